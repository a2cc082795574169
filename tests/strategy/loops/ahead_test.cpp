#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"
#include "tests/temporary_directory.h"

namespace palimpsest::ahead_test {
namespace {

/// Provides threads on every machine.
struct SomeThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 8};
};

/// Kernels that are too short to be split among threads; a whole step takes a while.
Var slow_step(const Var& u, const Var& speed) {
  Var x = ring_step(u, speed);
  for (int i = 0; i < 3; ++i) x = cumsum(sin(x), 0) * 0.01;
  return x;
}

constexpr std::int64_t cells = 300;
constexpr std::int64_t steps = 500;

/// A loop of known or unknown length.
struct Slow {
  Tape tape;
  Var u = tape.parameter(wave(cells));
  Var speed = tape.parameter(number(0.2));
  Var loss;

  Slow(bool is_known, const LoopOptions& options) {
    Var end;
    if (is_known) {
      const auto step = [this](const Var& x, const StepNumber&) { return slow_step(x, speed); };
      end = scan(u, steps, step, options);
    } else {
      const Var start[] = {u, tape.constant(number(0))};
      const WhileResult loop = while_loop(
          start,
          [](std::span<const Var> x, const StepNumber&) {
            return x[1] < static_cast<double>(steps);
          },
          [this](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
            return LoopStep{{slow_step(x[0], speed), x[1] + 1.0}};
          },
          options);
      end = loop.state[0];
    }
    loss = sum(end * end);
  }
};

TEST_CASE_METHOD(SomeThreads, "states made ahead: the same bits, within any budget") {
  const TemporaryDirectory directory;
  for (const bool is_known : {true, false}) {
    const Slow all(is_known, {});
    const Gradients expected = backward(all.loss, {.threads = 1});
    for (const bool spill : {false, true}) {
      LoopOptions options{.check = true};
      if (spill) options.spill = directory.path();
      options.disk_costs = DiskCosts{1.5, 1.5};
      for (const int threads : {1, 2, 3}) {
        for (const Bytes states : {40, 80, 160}) {
          CAPTURE(is_known, spill, threads, states);
          const Slow slow(is_known, options);
          const Bytes budget = states * cells * 8;
          const Gradients found =
              backward(slow.loss, {.memory_budget = budget, .threads = threads});
          CHECK(found.report().measured_peak <= found.report().predicted_peak);
          CHECK(found.report().predicted_peak <= budget);
          CHECK(same_bits(found[slow.u], expected[all.u]));
          CHECK(same_bits(found[slow.speed], expected[all.speed]));
          const Report::Loop& loop = found.report().loops.at(0);
          if (states > 40) CHECK((loop.ahead > 0) == (threads > 1));
          if (is_known && states == 40) CHECK((loop.disk_writes > 0) == spill);
        }
      }
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "states made ahead: as a loop's own budget allows") {
  const LoopOptions options{.memory_budget = 100 * cells * 8};
  const Slow one(true, options);
  const Slow two(true, options);
  const Gradients expected = backward(one.loss, {.threads = 1});
  const Gradients found = backward(two.loss, {.threads = 2});
  CHECK(expected.report().loops.at(0).ahead == 0);
  CHECK(found.report().loops.at(0).ahead > 0);
  CHECK(same_bits(found[two.u], expected[one.u]));
  constexpr Bytes others = 3 * cells * 8;
  CHECK(found.report().measured_peak <= options.memory_budget + others);
}

TEST_CASE_METHOD(SomeThreads,
                 "states made ahead: beside states in half their bytes, with several derivatives") {
  const auto run = [](int threads, Codec codec) {
    const Slow slow(true, {.codec = codec});
    const Var both[] = {gradient(slow.loss, slow.u), gradient(slow.loss * 2.0, slow.speed)};
    Report report = evaluate(both, {.memory_budget = 160 * cells * 8, .threads = threads});
    CHECK(report.measured_peak <= report.predicted_peak);
    CHECK(report.predicted_peak <= 160 * cells * 8);
    return std::tuple(both[0].value().clone(), both[1].value().clone(), report.loops.at(0).ahead);
  };
  const auto [u, speed, none] = run(1, Codec::exact);
  CHECK(none == 0);
  const auto [same_u, same_speed, some] = run(3, Codec::exact);
  CHECK(some > 0);
  CHECK(same_bits(same_u, u));
  CHECK(same_bits(same_speed, speed));
  const auto [nearly_u, nearly_speed, also] = run(3, Codec::half);
  CHECK(also > 0);
  CHECK(largest_difference(nearly_u, u) < 1e-5);
  CHECK(largest_difference(nearly_speed, speed) < 1e-2);
}

TEST_CASE_METHOD(
    SomeThreads,
    "states made ahead: some loops of a tape, where there are more threads than these") {
  for (const int threads : {2, 4}) {
    Tape tape;
    const Var u = tape.parameter(wave(cells));
    const Var speed = tape.parameter(number(0.2));
    const Var first =
        scan(u, steps, [&](const Var& x, const StepNumber&) { return slow_step(x, speed); });
    const Var second = scan(u, 30, [&](const Var& x, const StepNumber& n) {
      return slow_step(n % 7 == 0 ? x * 0.9 : x, speed);
    });
    const Gradients found = backward(sum(first) + sum(second * second),
                                     {.memory_budget = 200 * cells * 8, .threads = threads});
    const std::vector<Report::Loop>& loops = found.report().loops;
    REQUIRE(loops.size() == 2);
    for (const Report::Loop& loop : loops) {
      CHECK((loop.ahead > 0) == (threads > 2 && !loop.recorded_again));
      CHECK(loop.recorded_again == (loop.steps == 30));
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "states made ahead: not where that is of no use") {
  const auto ahead = [](const Var& loss, Bytes budget) {
    return backward(loss, {.memory_budget = budget, .threads = 2}).report().loops.at(0).ahead;
  };
  CHECK(ahead(Slow(true, {}).loss, unlimited) == 0);
  CHECK(ahead(Slow(false, {}).loss, unlimited) == 0);
  Tape tape;
  const Var c = tape.parameter(number(0.2));
  constexpr Bytes many = 100'000;
  const Var large = tape.constant(wave(many));
  const Var divided =
      scan(large, 60, [&](const Var& x, const StepNumber&) { return exp(sin(x) * c); });
  CHECK(ahead(sum(divided), 40 * many * 8) == 0);  // kernels that are split among threads
  const Var small = tape.constant(wave(64));
  const Var branches = scan(small, steps, [&](const Var& x, const StepNumber&) {
    Var y = x;
    for (int i = 0; i < 8; ++i) y = y + cumsum(sin(x * (c + 0.1 * i)), 0);
    return y * 0.1;
  });
  CHECK(ahead(sum(branches), 160 * 64 * 8) == 0);  // kernels that run concurrently
  for (const std::int64_t few : {0, 1, 2, 9}) {
    const Var short_loop =
        scan(small, few, [&](const Var& x, const StepNumber&) { return slow_step(x, c); });
    CHECK(ahead(sum(short_loop), 40'000) == 0);
  }
}

std::atomic<int> reversing = 0;
std::atomic<bool> has_met = false;

/// A copy operation. Once, its adjoint waits a moment for another thread to run the operation.
void copy(const KernelCall& call) {
  if (reversing > 0) has_met = true;
  const double* const from = call.input().as<double>();
  std::copy(from, from + call.input().elements(), call.output().as<double>());
}
void wait_and_copy(const KernelCall& call) {
  using namespace std::chrono_literals;
  const int depth = reversing++;
  const auto end = std::chrono::steady_clock::now() + 500ms;
  while (!has_met && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  reversing = depth;
  const double* const from = call.input().as<double>();
  std::copy(from, from + call.input().elements(), call.output().as<double>());
}
const Operation waiting_operation{
    .name = "waiting", .formula = "y = x", .summary = "", .compute = wait_and_copy};
const Operation copying_operation{
    .name = "copying",
    .formula = "y = x",
    .summary = "",
    .compute = copy,
    .vjp = [](const Pullback& p) {
      const Var adjoint = p.adjoint(0);
      const ValueType type = adjoint.type();
      p.set(0, p.tape().record(waiting_operation, {&adjoint, 1}, {&type, 1}, {}, p.where()));
    }};

TEST_CASE_METHOD(SomeThreads, "states are made ahead by another thread") {
  Tape tape;
  const Var u = tape.parameter(wave(cells));
  const Var speed = tape.parameter(number(0.2));
  const Var end = scan(u, steps, [&](const Var& x, const StepNumber&) {
    const ValueType type = x.type();
    const Var y = x.tape().record(copying_operation, {&x, 1}, {&type, 1}, {}, Where::current());
    return slow_step(y, speed);
  });
  const Gradients found = backward(sum(end), {.memory_budget = 160 * cells * 8, .threads = 2});
  CHECK(found.report().loops.at(0).ahead > 0);
  CHECK(has_met);
}

TEST_CASE_METHOD(SomeThreads, "states made ahead: an error of either side is passed on") {
  for (const bool forward : {true, false}) {
    CAPTURE(forward);
    auto calls = std::make_shared<std::atomic<int>>(0);
    const auto count = [calls](bool fails) {
      if (fails && ++*calls == 700) throw std::runtime_error("broken kernel");
    };
    const CustomOperation back{
        {.name = "breaking_adjoint", .forward = [count, forward](const CustomCall& call) {
           count(!forward);
           std::ranges::copy(call.inputs[0].data<double>(), call.outputs[0].data<double>().begin());
         }}};
    const CustomOperation breaking{
        {.name = "breaking",
         .forward =
             [count, forward](const CustomCall& call) {
               count(forward);
               std::ranges::copy(call.inputs[0].data<double>(),
                                 call.outputs[0].data<double>().begin());
             },
         .vjp = [back](const Pullback& p) { p.set(0, back({p.adjoint()})); }}};
    Tape tape;
    const Var u = tape.parameter(wave(cells));
    const Var speed = tape.parameter(number(0.2));
    const Var end = scan(u, steps * 2, [&](const Var& x, const StepNumber&) {
      return slow_step(breaking({x}), speed);
    });
    const Var loss = sum(end);
    const RunOptions options{.memory_budget = 160 * cells * 8, .threads = 2};
    CHECK_THROWS_WITH(backward(loss, options), Catch::Matchers::Contains("broken kernel"));
    CHECK(backward(loss, options).report().loops.at(0).ahead > 0);
  }
}

TEST_CASE("states ahead depend on the threads of a run, not on those of an earlier one") {
  const auto record = [](Tape& tape) {
    const Var w = tape.parameter(Tensor::normal({300}, 1, 0, 0.1, DType::f64));
    return sum(square(scan(w, 300, [](const Var& u, const StepNumber&) {
      Var x = u * 0.9 + cumsum(u, 0) * 1e-3;
      for (int i = 0; i < 3; ++i) x = cumsum(sin(x), 0) * 0.01;
      return x;
    })));
  };
  const auto ahead = [](const Var& loss, int threads) {
    const RunOptions options{.memory_budget = 192'000, .threads = threads};
    return backward(loss, options).report().loops.at(0).ahead;
  };
  Tape one;
  Tape two;
  Tape both;
  const Var loss = record(both);
  const std::uint32_t with_one = ahead(record(one), 1);
  const std::uint32_t with_two = ahead(record(two), 2);
  for (int i = 0; i < 2; ++i) {
    CHECK(ahead(loss, 1) == with_one);
    CHECK(ahead(loss, 2) == with_two);
  }
}

}  // namespace
}  // namespace palimpsest::ahead_test
