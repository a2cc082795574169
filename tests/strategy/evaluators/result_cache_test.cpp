#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "palimpsest.h"
#include "strategy/evaluators/engine.h"
#include "tests/catch.h"

namespace palimpsest::result_cache_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

/// Copies its input and counts the calls.
struct Counted {
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  CustomOperation operation{{.name = "counted",
                             .forward =
                                 [calls = calls](const CustomCall& call) {
                                   ++*calls;
                                   const auto x = call.inputs[0].data<double>();
                                   std::ranges::copy(x, call.outputs[0].data<double>().begin());
                                 },
                             .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }}};
};

/// Features of a batch that does not change, and a layer trained on them.
struct Frozen {
  Tensor batch = Tensor::uniform({40, 30}, 1, -1, 1, DType::f64);
  Tensor frozen = Tensor::uniform({30, 30}, 2, -0.3, 0.3, DType::f64);
  Tensor trained = Tensor::uniform({30, 5}, 3, -0.3, 0.3, DType::f64);
  std::shared_ptr<EngineEvaluator> evaluator = lazy();
  Tape tape{evaluator};

  Var loss() {
    tape.clear();
    Var x = tape.constant(batch);
    for (int i = 0; i < 3; ++i) x = tanh(matmul(x, tape.constant(frozen)));
    const Var y = matmul(x, tape.parameter(trained));
    return mean(y * y);
  }
  Gradients step(const RunOptions& options) { return backward(loss(), options); }
};

TEST_CASE("cached results: what leads up to a change is computed twice, then never") {
  Frozen kept;
  Frozen plain;
  std::uint32_t computed = 0;
  for (int step = 0; step < 5; ++step) {
    const Gradients found = kept.step({.memory = AllocationPolicy::cached});
    const Gradients expected = plain.step({});
    CHECK(same_bits(found.entries()[0].gradient, expected.entries()[0].gradient));
    CHECK(found.loss().item() == expected.loss().item());
    const Report& report = found.report();
    CHECK(report.cached == (step < 2 ? 0 : 1));
    CHECK(report.cached_bytes == (step < 1 ? 0 : 40 * 30 * 8));
    if (step < 2) computed = report.computed;
    if (step >= 2) CHECK(report.computed < computed);
    for (Frozen* each : {&kept, &plain}) each->trained.data<double>()[7] += 0.01;
  }
}

TEST_CASE("cached results: a leaf that is changed in place is noticed") {
  Frozen kept;
  Frozen plain;
  for (int step = 0; step < 8; ++step) {
    CAPTURE(step);
    const Gradients found = kept.step({.memory = AllocationPolicy::cached});
    const Gradients expected = plain.step({});
    CHECK(same_bits(found.entries()[0].gradient, expected.entries()[0].gradient));
    for (Frozen* each : {&kept, &plain}) {
      each->trained.data<double>()[step] += 0.01;
      if (step % 3 == 2) each->frozen.data<double>()[step] = 0.25;  // without telling the library
      if (step == 4) each->batch = Tensor::uniform({40, 30}, 9, -1, 1, DType::f64);
      if (step == 6) each->batch = Tensor::uniform({20, 30}, 9, -1, 1, DType::f64);
    }
  }
}

TEST_CASE("cached results: what is asked for again is there, and is the caller's") {
  const auto evaluator = lazy({.memory = AllocationPolicy::cached});
  Tape tape(evaluator);
  const Counted counted;
  const Tensor given = Tensor::full({10}, 0.5, DType::f64);
  for (int step = 0; step < 4; ++step) {
    tape.clear();
    const Var y = counted.operation({sin(tape.constant(given))});
    Tensor value = y.value();
    CHECK(value.data<double>()[3] == std::sin(0.5));
    value.data<double>()[3] = 7;  // changes only the caller's copy
  }
  // The function belongs to the user. The cache recognises the same operation and its result.
  CHECK(*counted.calls == 2);
}

TEST_CASE("cached results: views of them are the caller's too, and stay views of one value") {
  const auto evaluator = lazy({.memory = AllocationPolicy::cached});
  Tape tape(evaluator);
  const Tensor given = Tensor::full({10}, 0.5, DType::f64);
  for (int step = 0; step < 5; ++step) {
    tape.clear();
    const Var y = exp(tape.constant(given));
    const Var views[] = {reshape(y, {2, 5}), reshape(y, {5, 2})};
    const Report report = evaluate(views, {.memory = AllocationPolicy::cached});
    if (step > 1) CHECK(report.cached == 1);
    Tensor first = views[0].value();
    CHECK(first.data<double>()[3] == std::exp(0.5));
    CHECK(views[1].value().raw() == first.raw());
    first.data<double>()[3] = 7;
  }
}

TEST_CASE("cached results: none are left where another kind of memory is asked for") {
  const auto evaluator = lazy({.memory = AllocationPolicy::cached});
  Engine& engine = evaluator->engine();
  Tape tape(evaluator);
  const Tensor given = Tensor::full({1000}, 0.5, DType::f64);
  const auto step = [&](AllocationPolicy memory) {
    tape.clear();
    const Var y = sum(dropout(exp(tape.constant(given)), 0.5));
    return evaluate({&y, 1}, {.memory = memory});
  };
  for (int k = 0; k < 3; ++k) step(AllocationPolicy::cached);
  CHECK(step(AllocationPolicy::cached).cached == 1);
  CHECK(step(AllocationPolicy::standard).cached == 0);
  tape.clear();
  CHECK(engine.meter().live() == 0);
}

TEST_CASE("cached results: random numbers are drawn anew") {
  const auto evaluator = lazy({.memory = AllocationPolicy::cached});
  Tape tape(evaluator);
  Tape plain;
  const Tensor given = Tensor::full({100}, 0.5, DType::f64);
  std::vector<double> sums;
  for (int step = 0; step < 4; ++step) {
    tape.clear();
    plain.clear();
    const double found = sum(dropout(exp(tape.constant(given)), 0.5)).item();
    CHECK(found == sum(dropout(exp(plain.constant(given)), 0.5)).item());
    sums.push_back(found);
  }
  CHECK(sums[1] != sums[2]);
}

TEST_CASE("cached results: inside budgets, and none where there is no room") {
  Frozen unlimited_run;
  const Report first = unlimited_run.step({.memory = AllocationPolicy::cached}).report();
  const Gradients expected = Frozen().step({});
  Bytes smallest = 0;
  try {
    Frozen().step({.memory_budget = 1});
  } catch (const BudgetError& error) {
    smallest = error.smallest_feasible();
  }
  for (const Bytes budget : {4 * first.measured_peak, first.measured_peak, smallest}) {
    Frozen kept;
    for (int step = 0; step < 4; ++step) {
      CAPTURE(budget, step);
      const Gradients found =
          kept.step({.memory_budget = budget, .memory = AllocationPolicy::cached});
      CHECK(same_bits(found.entries()[0].gradient, expected.entries()[0].gradient));
      CHECK(found.report().measured_peak <= found.report().predicted_peak);
      CHECK(found.report().predicted_peak <= budget);
      if (budget > 2 * first.measured_peak && step > 1) CHECK(found.report().cached > 0);
    }
  }
  Frozen none;
  CHECK_THROWS_AS(none.step({.memory_budget = 1'000, .memory = AllocationPolicy::cached}),
                  BudgetError);
}

TEST_CASE("cached results: a run that fails leaves nothing behind") {
  const auto evaluator = lazy({.memory = AllocationPolicy::cached});
  Tape tape(evaluator);
  auto fails = std::make_shared<bool>(false);
  const CustomOperation breaking{{.name = "breaking", .forward = [fails](const CustomCall& call) {
                                    if (*fails) throw std::runtime_error("broken kernel");
                                    std::ranges::copy(call.inputs[0].data<double>(),
                                                      call.outputs[0].data<double>().begin());
                                  }}};
  Tensor changing = Tensor::full({10}, 0.5, DType::f64);
  const Tensor same = Tensor::full({10}, 0.25, DType::f64);
  for (int step = 0; step < 6; ++step) {
    tape.clear();
    *fails = step == 3;
    const Var y = breaking({exp(tape.constant(same)) * tape.constant(changing)});
    const Var loss = sum(y);
    if (*fails) {
      CHECK_THROWS_WITH(loss.item(), Contains("broken kernel"));
      CHECK_FALSE(tape.has_value(loss.id()));
    } else {
      CHECK_THAT(loss.item(), WithinRel(10 * std::exp(0.25) * changing.at(0), 1e-5));
    }
    changing.data<double>()[0] += 0.0;
    for (double& x : changing.data<double>()) x += 1;
  }
}

TEST_CASE("cached results: not by programs") {
  CHECK_THROWS_WITH(
      Program::values([](Tape& tape) { return std::vector{exp(tape.constant(Tensor::ones({3})))}; },
                      {.memory = AllocationPolicy::cached}),
      Contains("[program]"));
}

}  // namespace
}  // namespace palimpsest::result_cache_test
