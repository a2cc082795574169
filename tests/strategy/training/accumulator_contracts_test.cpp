#include "tests/catch.h"
//
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "palimpsest.h"
#include "tests/error_of.h"

namespace palimpsest::accumulator_contracts_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;

/// Parameters, each with a name, shape and dtype.
struct Model {
  std::vector<std::pair<std::string, ValueType>> parameters;

  NamedTensors gradients(std::uint64_t seed) const {
    NamedTensors made;
    for (const auto& [name, type] : parameters) {
      made[name] = Tensor::normal(type.shape, 100 * seed + made.size(), 0, 1, type.dtype);
    }
    return made;
  }
  GradientAccumulator accumulator(AccumulatorOptions options) const {
    GradientAccumulator made(options);
    for (const auto& [name, type] : parameters) made.register_parameter(name, type);
    return made;
  }
  NamedTensors taken(GradientAccumulator& accumulator) const {
    NamedTensors all;
    for (const auto& [name, type] : parameters) all[name] = accumulator.gradient(name);
    return all;
  }
};

bool same(const NamedTensors& a, const NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_bits(x.second, y.second);
  });
}

TEST_CASE("the same bits at any number of threads") {
  // Larger than one chunk, and many small ones.
  Model model{{{"large", {{300, 401}, DType::f32}}, {"half", {{90'001}, DType::bf16}}}};
  for (int i = 0; i < 40; ++i) {
    model.parameters.push_back({"small" + std::to_string(i), {{i}, DType::f64}});
  }
  const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, 3);
  double norm = 0;
  NamedTensors expected;
  for (const int threads : {1, 2, 3}) {
    tbb::task_arena(threads).execute([&] {
      GradientAccumulator accumulator = model.accumulator(
          {.steps = 3, .normalization = GradientNormalization::weighted, .clip_norm = 2});
      for (int part = 1; part <= 3; ++part) accumulator.step(model.gradients(part), part * part);
      const NamedTensors taken = model.taken(accumulator);
      if (threads == 1) {
        norm = accumulator.norm();
        expected = taken;
      }
      CHECK(norm > 2);
      CHECK(accumulator.norm() == norm);
      CHECK(same(taken, expected));
    });
  }
}

TEST_CASE("properties of accumulated gradients") {
  const auto model_of = [] {
    Model model;
    const int parameters = *rc::gen::inRange(1, 6);
    for (int i = 0; i < parameters; ++i) {
      Shape shape;
      const int rank = *rc::gen::inRange(0, 4);
      for (int axis = 0; axis < rank; ++axis) shape.push_back(*rc::gen::inRange(0, 6));
      model.parameters.push_back({std::string(1, static_cast<char>('a' + i)), {shape, DType::f64}});
    }
    return model;
  };
  const auto options = [](int steps) {
    return AccumulatorOptions{
        .steps = steps,
        .normalization = *rc::gen::element(GradientNormalization::sum, GradientNormalization::mean,
                                           GradientNormalization::weighted)};
  };
  rc::prop("the order in which parameters are registered and given does not matter", [&] {
    const Model model = model_of();
    Model other = model;
    std::ranges::reverse(other.parameters);
    const int steps = *rc::gen::inRange(1, 5);
    const AccumulatorOptions chosen = options(steps);
    GradientAccumulator one = model.accumulator(chosen);
    GradientAccumulator two = other.accumulator(chosen);
    for (int part = 0; part < steps; ++part) {
      const NamedTensors gradients = model.gradients(part);
      one.step(gradients);
      for (const auto& [name, type] : other.parameters) two.accumulate(name, gradients.at(name));
      two.step();
    }
    RC_ASSERT(same(model.taken(one), model.taken(two)));
    RC_ASSERT(std::abs(one.norm() - two.norm()) <= 1e-14 * one.norm());
  });
  rc::prop("it is linear", [&] {
    const Model model = model_of();
    const int steps = *rc::gen::inRange(1, 5);
    const AccumulatorOptions chosen = options(steps);
    const double factor = *rc::gen::inRange(-8, 9) / 3.0;
    GradientAccumulator x = model.accumulator(chosen);
    GradientAccumulator y = model.accumulator(chosen);
    GradientAccumulator both = model.accumulator(chosen);
    for (int part = 0; part < steps; ++part) {
      const bool may_differ = chosen.normalization != GradientNormalization::mean;
      const std::int64_t examples = may_differ ? *rc::gen::inRange(1, 9) : 1;
      const NamedTensors first = model.gradients(2 * part);
      const NamedTensors second = model.gradients(2 * part + 1);
      NamedTensors sum;
      for (const auto& [name, gradient] : first) {
        sum[name] = gradient.clone();
        const auto data = sum[name].data<double>();
        for (std::size_t i = 0; i < data.size(); ++i) {
          data[i] = factor * data[i] + second.at(name).data<double>()[i];
        }
      }
      x.step(first, examples);
      y.step(second, examples);
      both.step(sum, examples);
    }
    for (const auto& [name, type] : model.parameters) {
      const Tensor expected_x = x.gradient(name), expected_y = y.gradient(name);
      for (std::int64_t i = 0; i < type.shape.elements(); ++i) {
        const double expected = factor * expected_x.at(i) + expected_y.at(i);
        RC_ASSERT(std::abs(both.gradient(name).at(i) - expected) <= 1e-13);
      }
    }
  });
}

TEST_CASE("options and registrations that cannot be are errors") {
  check_error([] { GradientAccumulator({.steps = 0}); }, {"[accumulator]", "at least one", "0"});
  check_error([] { GradientAccumulator({.clip_norm = 0}); }, {"norm to clip to", "clip_norm"});
  check_error([] { GradientAccumulator({.clip_norm = std::nan("")}); }, {"norm to clip to"});

  GradientAccumulator accumulator({.steps = 2});
  check_error([&] { accumulator.register_parameter("", {{2}}); }, {"f32 (2)", "has no name"});
  CHECK_THROWS_AS(accumulator.register_parameter("i", {{2}, DType::i32}), DTypeError);
  check_error([&] { accumulator.step(); }, {"no parameters", "register_parameter"});
  check_error([&] { accumulator.step(NamedTensors{}); }, {"no parameters"});
  check_error([&] { accumulator.accumulate("w", Tensor::ones({2})); },
              {"'w'", "register_parameter"});
  accumulator.register_parameter("w", {{2}});
  check_error([&] { accumulator.register_parameter("w", {{3}}); }, {"two parameters 'w'"});
  accumulator.step({{"w", Tensor::ones({2})}});
  check_error([&] { accumulator.register_parameter("v", {{2}}); },
              {"'v'", "after the first micro-batch", "reset()"});
  accumulator.reset();
  accumulator.register_parameter("v", {{2}});
  CHECK(accumulator.statistics().parameters == 2);
}

using Wrong = std::function<void(GradientAccumulator&)>;
struct Failure {
  const char* name;
  Wrong act;
  std::vector<std::string> words;
};

const Model model{
    {{"w", {{2, 3}, DType::f32}}, {"b", {{3}, DType::f64}}, {"h", {{4}, DType::f16}}}};

/// A micro-batch in which one parameter has another gradient.
NamedTensors with(const std::string& name, const Tensor& gradient) {
  NamedTensors gradients = model.gradients(7);
  gradients[name] = gradient;
  return gradients;
}

NamedTensors without(const std::string& name) {
  NamedTensors gradients = model.gradients(7);
  gradients.erase(name);
  return gradients;
}

Gradients of_tape(Tape& tape, std::initializer_list<const char*> names) {
  Var loss = tape.constant(Tensor::scalar(1));
  for (const char* name : names) {
    const auto& type =
        std::find_if(model.parameters.begin(), model.parameters.end(), [&](const auto& p) {
          return p.first == name;
        })->second;
    loss = loss + sum(cast(tape.parameter(Tensor::ones(type.shape, type.dtype), name), DType::f32));
  }
  return backward(loss);
}

std::vector<Failure> failing_micro_batches() {
  return {
      {"shape",
       [](auto& a) { a.step(with("h", Tensor::ones({5}, DType::f16))); },
       {"[accumulator]", "'h'", "f16 (4)", "f16 (5)"}},
      {"dtype",
       [](auto& a) { a.step(with("b", Tensor::ones({3}))); },
       {"'b'", "f64 (3)", "f32 (3)", "to()"}},
      {"empty", [](auto& a) { a.step(with("b", Tensor())); }, {"'b'", "is empty", "give zeros"}},
      {"unknown name",
       [](auto& a) { a.step(with("z", Tensor::ones({3}))); },
       {"'z'", "use one of 'w', 'b', 'h'"}},
      {"missing", [](auto& a) { a.step(without("h")); }, {"no gradient of 'h'", "zeros"}},
      {"no examples",
       [](auto& a) { a.step(model.gradients(7), 0); },
       {"at least one example", "0"}},
      {"fewer examples",
       [](auto& a) { a.step(model.gradients(7), 2); },
       {"2 examples after one of 1", "GradientNormalization::weighted"}},
      {"one by one: unknown", [](auto& a) { a.accumulate("z", Tensor::ones({3})); }, {"'z'"}},
      {"one by one: shape",
       [](auto& a) {
         a.accumulate("w", Tensor::ones({2, 3}));
         a.accumulate("b", Tensor::ones({4}, DType::f64));
       },
       {"'b'", "f64 (3)", "f64 (4)"}},
      {"one by one: twice",
       [](auto& a) {
         a.accumulate("w", Tensor::ones({2, 3}));
         a.accumulate("w", Tensor::ones({2, 3}));
       },
       {"'w'", "already given in this micro-batch", "discard()"}},
      {"one by one: missing",
       [](auto& a) {
         a.accumulate("w", Tensor::ones({2, 3}));
         a.step();
       },
       {"no gradient of 'b'"}},
      {"one by one, then whole",
       [](auto& a) {
         a.accumulate("w", Tensor::ones({2, 3}));
         a.step(model.gradients(7));
       },
       {"1 of 3 parameters", "step()", "discard()"}},
      {"one by one, then taken",
       [](auto& a) {
         a.accumulate("w", Tensor::ones({2, 3}));
         a.norm();
       },
       {"1 of 3 parameters"}},
      {"no tape", [](auto& a) { a.gradients(); }, {"given as Gradients", "gradient(name)"}},
      {"another model",
       [](auto& a) {
         Tape tape;
         a.step(of_tape(tape, {"w", "b"}));
       },
       {"2 parameters", "3", "one accumulator per model"}},
      {"another order",
       [](auto& a) {
         Tape tape;
         a.step(of_tape(tape, {"w", "h", "b"}));
       },
       {"parameter 1", "'h'", "'b'", "order"}},
  };
}

TEST_CASE("a micro-batch that fails says why and leaves the sums as they were") {
  GradientAccumulator untouched = model.accumulator({.steps = 2});
  untouched.step(model.gradients(1));
  untouched.step(model.gradients(2));
  const NamedTensors expected = model.taken(untouched);
  for (const Failure& failure : failing_micro_batches()) {
    INFO(failure.name);
    GradientAccumulator accumulator = model.accumulator({.steps = 2});
    accumulator.step(model.gradients(1));
    const std::string message = error_of([&] { failure.act(accumulator); });
    for (const std::string& word : failure.words) CHECK_THAT(message, Contains(word));
    if (std::string(failure.name).starts_with("one by one")) accumulator.discard();
    CHECK(accumulator.micro_batches() == 1);
    CHECK(accumulator.step(model.gradients(2)));
    CHECK(same(model.taken(accumulator), expected));
    CHECK(accumulator.norm() == untouched.norm());
    CHECK(accumulator.statistics().micro_batches == 2);
  }
}

TEST_CASE("sums begin in the memory of gradients that nobody else has, with the same bits") {
  const auto gradients_of = [](Tape& tape, double x) {
    tape.clear();
    const Var w = tape.parameter(Tensor::full({70'000}, 0.1 * x));
    const Var h = tape.parameter(Tensor::full({3}, x, DType::bf16));
    return backward(sum(w * w) + sum(cast(h * h, DType::f32)));
  };
  Tape tape;
  GradientAccumulator copies({.steps = 3});
  GradientAccumulator takes({.steps = 3});
  GradientAccumulator takes_shared({.steps = 3});
  const std::byte* memory = nullptr;
  Tensor shared;
  Tensor unchanged;
  for (const double x : {1, 2, 3}) {
    const Gradients copied = gradients_of(tape, x);
    copies.step(copied);
    Gradients own = gradients_of(tape, x);
    if (x == 1) memory = own.entries()[0].gradient.raw();
    takes.step_taking(std::move(own));
    Gradients held = gradients_of(tape, x);
    if (x == 1) {
      shared = held.entries()[0].gradient;
      unchanged = shared.clone();
    }
    takes_shared.step_taking(std::move(held));
  }
  CHECK(takes.gradient("parameter 0").raw() == memory);
  CHECK(same_bits(shared, unchanged));
  for (const char* name : {"parameter 0", "parameter 1"}) {
    CHECK(same_bits(takes.gradient(name), copies.gradient(name)));
    CHECK(same_bits(takes_shared.gradient(name), copies.gradient(name)));
  }
  CHECK(takes.norm() == copies.norm());
}

TEST_CASE("a gradient refused can be given again, with what was given before") {
  GradientAccumulator whole = model.accumulator({});
  whole.step(model.gradients(1));
  GradientAccumulator accumulator = model.accumulator({});
  const NamedTensors gradients = model.gradients(1);
  accumulator.accumulate("w", gradients.at("w"));
  CHECK_THROWS_AS(accumulator.accumulate("b", Tensor::ones({4}, DType::f64)), ShapeError);
  CHECK_THROWS_AS(accumulator.step(), ArgumentError);
  accumulator.accumulate("b", gradients.at("b"));
  accumulator.accumulate("h", gradients.at("h"));
  CHECK(accumulator.step());
  CHECK(same(model.taken(accumulator), model.taken(whole)));
}

TEST_CASE("an update that is empty, full or taken says what comes next") {
  GradientAccumulator accumulator = model.accumulator({.steps = 2});
  check_error([&] { accumulator.norm(); }, {"nothing was accumulated", "step()"});
  check_error([&] { accumulator.gradient("w"); }, {"nothing was accumulated"});
  check_error([&] { accumulator.gradients(); }, {"nothing was accumulated"});
  check_error([&] { accumulator.gradient("z"); }, {"'z'"});
  accumulator.step(model.gradients(1));
  CHECK(accumulator.step(model.gradients(2)));
  const auto refused = [&](std::initializer_list<std::string> words) {
    check_error([&] { accumulator.step(model.gradients(3)); }, words);
    check_error([&] { accumulator.accumulate("w", Tensor::ones({2, 3})); }, words);
    check_error([&] { accumulator.step(); }, words);
  };
  refused({"all of its 2 micro-batches", "gradients()", "reset()"});
  const NamedTensors taken = model.taken(accumulator);
  refused({"were taken", "reset()"});
  CHECK(same(model.taken(accumulator), taken));
  accumulator.reset();
  accumulator.step(model.gradients(1));
  CHECK(accumulator.step(model.gradients(2)));
  CHECK(same(model.taken(accumulator), taken));
  // An incomplete update can be read, and continues afterwards.
  accumulator.reset();
  accumulator.step(model.gradients(1));
  CHECK(same(model.taken(accumulator), model.gradients(1)));
  CHECK(accumulator.step(model.gradients(2)));
  CHECK(same(model.taken(accumulator), taken));
  refused({"were taken"});
}

TEST_CASE("parameters of a tape are registered by their names, and by position without") {
  Tape tape;
  const Var a = tape.parameter(Tensor::scalar(1), "weight");
  const Var b = [&] {
    const auto scope = tape.scope("layer");
    return tape.parameter(Tensor::scalar(2), "weight");
  }();
  const Var c = tape.parameter(Tensor::scalar(3), "weight");
  const Var d = tape.parameter(Tensor::scalar(4));
  GradientAccumulator accumulator({.steps = 2});
  const Gradients once = backward(a + 2.0 * b + 3.0 * c + 4.0 * d);
  accumulator.step(once);
  accumulator.step(once);
  CHECK(accumulator.gradient("weight").item() == 1);
  CHECK(accumulator.gradient("layer/weight").item() == 2);
  CHECK(accumulator.gradient("weight 2").item() == 3);
  CHECK(accumulator.gradient("parameter 3").item() == 4);
  CHECK(accumulator.gradients()[d].item() == 4);
  CHECK(accumulator.gradients().loss().item() == 30);
}

TEST_CASE("a first micro-batch that fails registers nothing") {
  Tape tape;
  const Var p = tape.parameter(Tensor::ones({2}), "p");
  const Var q = tape.parameter(Tensor::ones({2}), "q");
  const Tensor ones = Tensor::ones({2});
  GradientAccumulator accumulator;
  const Gradients two_losses(ones, {{p, ones}, {q, ones}}, {});
  CHECK_THROWS_AS(accumulator.step(two_losses), ShapeError);
  const Gradients whole_numbers({}, {{p, ones}, {q, Tensor::ones({2}, DType::i64)}}, {});
  CHECK_THROWS_AS(accumulator.step(whole_numbers), DTypeError);
  CHECK(accumulator.statistics().parameters == 0);
  const Gradients fit(Tensor::scalar(1), {{p, ones}, {q, ones}}, {});
  CHECK(accumulator.step(fit));
  CHECK(accumulator.statistics().parameters == 2);
  CHECK(same_bits(accumulator.gradients()[q], ones));
}

TEST_CASE("an update overflowed when any of its micro-batches did") {
  Tape tape;
  const Var p = tape.parameter(Tensor::scalar(3), "p");
  const auto micro_batch = [&](Bytes peak, bool overflowed) {
    Report report;
    report.overflowed = overflowed;
    report.measured_peak = peak;
    return Gradients({}, {{p, Tensor::scalar(1)}}, report);
  };
  const Bytes second_peak = GENERATE(50, 100, 150);
  for (const bool first : {false, true}) {
    for (const bool second : {false, true}) {
      GradientAccumulator accumulator({.steps = 2});
      accumulator.step(micro_batch(100, first));
      accumulator.step(micro_batch(second_peak, second));
      const Gradients taken = accumulator.gradients();
      CHECK(taken.report().overflowed == (first || second));
      CHECK(taken.report().measured_peak == std::max<Bytes>(100, second_peak));
      accumulator.reset();
      accumulator.step(micro_batch(1, false));
      CHECK_FALSE(accumulator.gradients().report().overflowed);
    }
  }
}

TEST_CASE("more examples than can be counted are refused") {
  GradientAccumulator accumulator =
      model.accumulator({.steps = 3, .normalization = GradientNormalization::weighted});
  accumulator.step(model.gradients(1), INT64_MAX - 1);
  check_error([&] { accumulator.step(model.gradients(2), 2); },
              {"[accumulator]", "2 examples", std::to_string(INT64_MAX - 1), "steps"});
  CHECK(accumulator.micro_batches() == 1);
  accumulator.step(model.gradients(2), 1);
  CHECK(accumulator.statistics().effective_batch == INT64_MAX);
}

TEST_CASE("micro-batches without parameters add their losses") {
  // A tape without parameters has no gradients, but a user may put some together.
  const auto loss = [](double value) { return Gradients(Tensor::scalar(value), {}, Report()); };
  GradientAccumulator accumulator({.steps = 2, .clip_norm = 1});
  accumulator.step(loss(1));
  Tape tape;
  const Gradients other = backward(tape.parameter(Tensor::scalar(5)));
  check_error([&] { accumulator.step(other); }, {"1 parameter", "0 are registered"});
  CHECK(accumulator.step(loss(4)));
  CHECK(accumulator.norm() == 0);
  const Gradients sums = accumulator.gradients();
  CHECK(sums.entries().empty());
  CHECK(sums.loss().item() == 2.5);
}

TEST_CASE("a loss is there when every micro-batch has one") {
  Tape tape;
  const Var p = tape.parameter(Tensor::scalar(3), "p");
  const Gradients whole = backward(p * p);
  GradientAccumulator accumulator({.steps = 2});
  accumulator.step(whole);
  accumulator.step({{"p", Tensor::scalar(2)}});
  CHECK_FALSE(accumulator.gradients().loss().defined());
  CHECK_THAT(accumulator.gradients()[p].item(), WithinAbs(4, 0));
}

}  // namespace
}  // namespace palimpsest::accumulator_contracts_test
