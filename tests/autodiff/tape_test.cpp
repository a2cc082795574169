#include "autodiff/tape.h"

#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "autodiff/recording_guards.h"
#include "tests/catch.h"

namespace palimpsest::tape_test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("nodes carry names and nested scopes") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}), "x");
  Var inner, after;
  {
    const auto layer = tape.scope("layer3");
    {
      const auto attention = tape.scope("attention");
      inner = exp(x).named("scores");
    }
    after = exp(x);
  }
  const Var outside = exp(x);
  CHECK(tape.name(x.node()) == "x");
  CHECK(tape.scope_of(inner.node()) == "layer3/attention");
  CHECK(tape.describe(inner.node()) == "layer3/attention/scores exp #1");
  CHECK(tape.describe(after.node()) == "layer3/exp #2");
  CHECK(tape.describe(outside.node()) == "exp #3");
  CHECK_THROWS_WITH(tape.scope(""), Contains("[scope] a scope needs a name"));
}

TEST_CASE("a tape tells what was recorded") {
  Tape tape;
  const Var x = tape.parameter(Tensor::matrix({{1, 2, 3}}));
  const Var c = tape.constant(Tensor::vector({2}));
  const Var y = x * c;
  CHECK(tape.node_count() == 3);
  CHECK(tape.operation(y.node()).name == "multiply");
  CHECK(tape.inputs(y.node())[0] == x.id());
  CHECK(tape.inputs(y.node())[1] == c.id());
  CHECK(y.type() == ValueType{{1, 3}, DType::f32});
  CHECK(tape.bytes(y.id()) == 12);
  CHECK(tape.is_parameter(x.node()));
  CHECK(!tape.is_parameter(c.node()));
  CHECK(tape.is_leaf(c.node()));
  CHECK(!tape.is_leaf(y.node()));
  CHECK(std::string(tape.where(y.node()).file_name()).find("tape_test.cpp") != std::string::npos);
}

TEST_CASE("values are computed when asked for and again after a drop") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}));
  const Var y = x * 3.0 + 1.0;
  CHECK(!tape.has_value(y.id()));
  const Tensor first = y.value();
  CHECK(same_bits(first, Tensor::vector({4, 7})));
  CHECK(tape.has_value(y.id()));
  CHECK(tape.value(y.id()).raw() == first.raw());
  tape.drop(y.id());
  CHECK(!tape.has_value(y.id()));
  CHECK(same_bits(y.value(), first));
  tape.drop(x.id());
  CHECK(tape.has_value(x.id()));  // a leaf's value cannot be recomputed
}

TEST_CASE("a parameter shares the storage of its tensor") {
  Tape tape;
  const Tensor weights = Tensor::vector({1, 2});
  const Var w = tape.parameter(weights);
  const Var y = w + w;
  CHECK(w.value().raw() == weights.raw());
  weights.data<float>()[0] = 5;
  CHECK(same_bits(y.value(), Tensor::vector({10, 4})));
}

TEST_CASE("handles go stale when their tape is cleared") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1}));
  const Var y = exp(x);
  tape.clear();
  CHECK(tape.node_count() == 0);
  CHECK(tape.value_count() == 0);
  const char* const words = "no longer on its tape: the tape was cleared";
  CHECK_THROWS_WITH(y.value(), Contains(words));
  CHECK_THROWS_WITH(exp(y), Contains(words));
  CHECK_THROWS_WITH(gradient(y, x), Contains(words));
  const Var fresh = exp(tape.parameter(Tensor::vector({0})));
  CHECK(fresh.item() == 1);
}

TEST_CASE("handles of a tape that is gone are errors, also when another tape takes its place") {
  std::vector<Var> handles;
  {
    Tape tape;
    handles.push_back(tape.parameter(Tensor::vector({1})));
    handles.push_back(exp(handles[0]));
  }
  const auto check = [&] {
    for (const Var& handle : handles) {
      CHECK_FALSE(handle.is_current());
      CHECK_THROWS_AS(handle.value(), TapeError);
      CHECK_THROWS_AS(handle.shape(), TapeError);
      CHECK_THROWS_WITH(exp(handle), Contains("[exp]") && Contains("destroyed") &&
                                         Contains("keep the tape") && Contains("tape_test.cpp"));
    }
  };
  check();
  Tape other;
  const Var x = other.parameter(Tensor::vector({2}));
  const Var y = exp(x);
  check();
  CHECK_FALSE(handles[0] == x);
  CHECK_FALSE(handles[1] == y);
  CHECK_THROWS_AS(x + handles[0], TapeError);
  other.clear();
  check();
}

TEST_CASE("handles of values that were taken off their tape are errors, others stay") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({3}));
  Var first, second;
  {
    const TemporaryNodes outer(tape);
    first = exp(x);
    {
      const TemporaryNodes inner(tape);
      second = exp(first);
      CHECK(second.is_current());
    }
    CHECK(first.is_current());
    CHECK_FALSE(second.is_current());
  }
  const Var y = x * 2;
  const Var z = y + 1;
  for (const Var& gone : {first, second}) {
    CHECK_THROWS_WITH(gone.value(), Contains("checkpoint()"));
    CHECK_THROWS_AS(gone + x, TapeError);
  }
  CHECK(x.value().item() == 3);
  CHECK(z.value().item() == 7);
  for (int i = 0; i < 5; ++i) {
    const TemporaryNodes region(tape);
    exp(z);
  }
  CHECK(z.is_current());
  CHECK(x == tape.var(x.id()));
  CHECK(y.belongs_to(tape));
}

TEST_CASE("handles of two tapes, and empty ones, do not mix") {
  Tape a, b;
  const Var x = a.parameter(Tensor::vector({1}));
  const Var y = b.parameter(Tensor::vector({2}));
  CHECK_THROWS_AS(x + y, TapeError);
  CHECK_THROWS_WITH(x + y, Contains("[add]") && Contains("different tapes") &&
                               Contains("tape.constant(x.value())") && Contains("tape_test.cpp"));
  CHECK_THROWS_WITH(x * Var(), Contains("Var without a value") || Contains("holds no value"));
  CHECK_THROWS_WITH(gradient(x, y), Contains("[gradient]") && Contains("different tapes"));
  CHECK((x + a.constant(y.value())).item() == 3);
  CHECK(a.node_count() == 3);  // the failed call left nothing on the tape
}

TEST_CASE("no derivative flows through blocked nodes") {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(3, DType::f64));
  const auto [record, expected] = GENERATE(table<Var (*)(Tape&, const Var&), double>({
      {[](Tape&, const Var& v) { return v * v; }, 6.0},
      {[](Tape&, const Var& v) { return v * stop_gradient(v); }, 3.0},
      {[](Tape& t, const Var& v) {
         const auto blocked = t.no_gradient();
         return v * v;
       },
       0.0},
      {[](Tape& t, const Var& v) {
         Var factor;
         {
           const auto blocked = t.no_gradient();
           factor = v * v;
         }
         return v * factor;
       },
       9.0},
  }));
  CHECK(gradient(record(tape, x), x).item() == expected);
}

TEST_CASE("metadata stays within 200 bytes a node") {
  const Shape shape = GENERATE(Shape{}, Shape{2, 1, 2, 1});
  Tape tape;
  const Var a = tape.parameter(Tensor::full(shape, 0.5));
  Var t = a;
  for (int i = 0; i < 500; ++i) t = t * a + t;
  gradient(t, a);
  CHECK(tape.metadata_bytes() <= 200 * static_cast<Bytes>(tape.node_count()));
}

TEST_CASE("a chain of a million nodes is recorded, differentiated and computed") {
  Tape tape;
  const double factor = 1e-6;
  const int steps = 500'000;
  const Var a = tape.parameter(Tensor::scalar(factor, DType::f64));
  Var t = tape.constant(Tensor::scalar(1, DType::f64));
  for (int i = 0; i < steps; ++i) t = t * a + t;
  REQUIRE(tape.node_count() >= 1'000'000);
  const Var slope = gradient(t, a);
  CHECK_THAT(t.item(), Catch::Matchers::WithinRel(std::pow(1 + factor, steps), 1e-9));
  CHECK_THAT(slope.item(),
             Catch::Matchers::WithinRel(steps * std::pow(1 + factor, steps - 1), 1e-9));
}

TEST_CASE("tapes on different threads are independent") {
  const auto work = [](double start) {
    Tape tape;
    const Var x = tape.parameter(Tensor::full({100}, start, DType::f64));
    Var t = x;
    for (int i = 0; i < 200; ++i) t = tanh(t * x) + x;
    return gradient(t, x).value();
  };
  std::vector<Tensor> alone, together(8);
  for (int i = 0; i < 8; ++i) alone.push_back(work(0.1 * i));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { together[static_cast<std::size_t>(i)] = work(0.1 * i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 8; ++i) CHECK(same_bits(alone[i], together[i]));
}

TEST_CASE("two threads that record on one tape get an error, not a broken tape") {
  Tape tape;
  constexpr std::uint32_t most = 2'000'000;
  std::atomic<int> ready = 0;
  std::atomic<bool> met = false;
  std::atomic<std::uint32_t> recorded = 0;
  std::string message;
  std::mutex message_mutex;
  const auto record = [&] {
    ++ready;
    while (ready < 2) std::this_thread::yield();
    const Tensor one = Tensor::scalar(1);
    try {
      for (; !met && recorded < most; ++recorded) tape.constant(one, "one");
    } catch (const TapeError& error) {
      met = true;
      const std::lock_guard lock(message_mutex);
      message = error.what();
    }
  };
  std::thread other(record);
  record();
  other.join();
  REQUIRE(met);
  CHECK_THAT(message, Contains("an operation is recorded on it") && Contains("give each thread"));
  // The recording is intact, and the tape remains usable.
  CHECK(tape.node_count() == recorded);
  const Var x = tape.parameter(Tensor::scalar(3, DType::f64));
  CHECK(gradient(x * x, x).item() == 6);
  CHECK(tape.name(0) == "one");
}

TEST_CASE("a kernel that throws leaves nothing behind") {
  Tape tape;
  const Var x = tape.constant(Tensor::arange(3));
  const Var doubled = x + x;
  const Var bad = gather(tape.parameter(Tensor::ones({3})), 0, doubled);
  CHECK_THROWS_AS(bad.value(), ArgumentError);
  CHECK(!tape.has_value(doubled.id()));
}

TEST_CASE("a result that no memory could hold is refused and leaves the tape as it was") {
  using Call = Var (*)(const Var&);
  const Call call = GENERATE(values<Call>({
      [](const Var& v) { return pad(v, {{std::int64_t{1} << 62, std::int64_t{1} << 62}, {0, 0}}); },
      [](const Var& v) { return tile(v, {std::int64_t{1} << 62, 4}); },
      [](const Var& v) { return repeat(v, std::int64_t{1} << 62, 0); },
      [](const Var& v) { return split(v, {1LL << 62, 1LL << 62, 1LL << 62, 1LL << 62}, 0)[0]; },
      [](const Var& v) { return reshape(v, {1LL << 32, 1LL << 32, -1}); },
  }));
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({2, 2}));
  CHECK_THROWS_AS(call(x), ShapeError);
  CHECK(gradient(sum(x * x), x).value().at(3) == 2);
}

}  // namespace
}  // namespace palimpsest::tape_test
