#include "strategy/backward.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/catch.h"
#include "tests/strategy/random_program.h"
//
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <stdexcept>

#include "autodiff/custom.h"
#include "strategy/evaluators/engine.h"

namespace palimpsest::present_test {
namespace {

TEST_CASE("budgets hold and bits stay, whatever was computed, held or thrown away before") {
  rc::prop("after runs of every kind", [] {
    const auto seed = *rc::gen::inRange<std::uint64_t>(1, 1'000'000);
    const auto size = *rc::gen::inRange(3, 40);
    Tape oracle_tape;
    const RandomProgram oracle = record_random(oracle_tape, seed, size);
    const Gradients expected = backward(oracle.loss, {.planner = keep_all()});

    const int mode = *rc::gen::inRange(0, 3);  // mode 2 computes its first values without planning
    Tape tape(mode == 0 ? lazy() : mode == 1 ? eager() : nullptr);
    const RandomProgram program = record_random(tape, seed, size);
    std::vector<Tensor> held;
    const int before = *rc::gen::inRange(1, 6);
    for (int k = 0; k < before; ++k) {
      const auto at = *rc::gen::inRange<std::size_t>(0, program.values.size());
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          held.push_back(program.values[at].value());
          break;
        case 1:
          program.values[at].value();
          break;
        case 2:
          evaluate({&program.values[at], 1});
          break;
        default:
          backward(program.loss);
      }
    }
    Bytes budget = 0;
    try {
      backward(program.loss, {.memory_budget = 0, .threads = 1});
    } catch (const BudgetError& error) {
      budget = error.smallest_feasible();
    }
    const Gradients gradients = backward(program.loss, {.memory_budget = budget, .threads = 1});
    const Report& report = gradients.report();
    RC_ASSERT(report.predicted_peak <= budget);
    RC_ASSERT(report.measured_peak <= report.predicted_peak);
    RC_ASSERT(report.measured_live_peak == report.predicted_live_peak);
    for (std::size_t i = 0; i < program.parameters.size(); ++i) {
      RC_ASSERT(same_bits(gradients[program.parameters[i]], expected[oracle.parameters[i]]));
    }
    for (std::size_t i = 0; i < program.values.size(); ++i) {
      RC_ASSERT(same_bits(program.values[i].value(), oracle.values[i].value()));
    }
  });
}

TEST_CASE("an eager tape computes all it lacks in one run and keeps the rest") {
  Tape tape(eager());
  const Var x = tape.parameter(Tensor::vector({0.5, 1}), "x");
  const Var a = tanh(x);
  const Var b = sin(x);
  const Var c = cos(a * b);
  const Tensor expected = (a + b).value();
  backward(sum(c), {.memory_budget = 1_MiB});
  REQUIRE_FALSE(tape.has_value(a.id()));
  REQUIRE_FALSE(tape.has_value(b.id()));
  CHECK(same_bits((a + b).value(), expected));
  CHECK(tape.has_value(a.id()));
  c.value();
  CHECK(tape.has_value(a.id()));
}

TEST_CASE("a run that fails leaves nothing half written behind") {
  int calls = 0;
  const CustomOperation twice_fails(
      {.name = "flaky",
       .forward =
           [&](const CustomCall& call) {
             const bool fails = ++calls == 2;
             const auto x = call.inputs[0].data<float>();
             const auto y = call.outputs[0].data<float>();
             for (std::size_t i = 0; i < y.size(); ++i) y[i] = fails ? -777 : 2 * x[i];
             if (fails) throw std::runtime_error("flaky");
           },
       .vjp = [](const Pullback& p) { p.set(0, p.adjoint() * 2.0 + p.output() * 0.0); }});
  Tape tape(lazy());
  const Var w = tape.parameter(Tensor::ones({1024}), "w");
  const Var v = twice_fails({w});
  Var s = v;
  for (int i = 0; i < 20; ++i) s = tanh(s * 0.9);
  const Var loss = sum(s * s);
  v.value();
  REQUIRE(calls == 1);
  Bytes smallest = 0;
  try {
    plan_backward(loss, {.memory_budget = 1});
  } catch (const BudgetError& error) {
    smallest = error.smallest_feasible();
  }
  REQUIRE_THROWS_WITH(backward(loss, {.memory_budget = smallest, .threads = 1}), "flaky");
  CHECK(same_bits(v.value(), Tensor::full({1024}, 2)));
}

TEST_CASE("what a run that fails in an arena gives back outlives the arena") {
  bool fails = true;
  const CustomOperation moody({.name = "moody",
                               .forward =
                                   [&](const CustomCall& call) {
                                     if (fails) throw std::runtime_error("moody");
                                     std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(),
                                                 call.outputs[0].raw());
                                   },
                               .vjp = [](const Pullback& p) { p.set(0, p.adjoint() * 1.0); }});
  const auto evaluator = lazy();
  Tape tape(evaluator);
  const Var small = tanh(tape.parameter(Tensor::ones({1024})));
  Var large = concat({small, small, small, small, small, small, small, small}, 0);
  for (int k = 0; k < 2; ++k) large = concat({large, large, large, large}, 0);
  const Var loss = sum(moody({sin(large)}));
  const Tensor expected = small.value().clone();
  REQUIRE_THROWS_WITH(backward(loss, {.memory_budget = 64_MiB, .threads = 1}), "moody");
  REQUIRE(tape.has_value(small.id()));
  const Tensor held = small.value();
  evaluator->engine().release_arena();
  CHECK(same_bits(held, expected));
  fails = false;
  const Gradients gradients = backward(loss, {.memory_budget = 64_MiB, .threads = 1});
  CHECK(same_bits(held, expected));
  CHECK(gradients.report().measured_peak <= evaluator->engine().meter().peak_reserved());
  CHECK(gradients.report().measured_live_peak <= evaluator->engine().meter().peak());
}

TEST_CASE("values without bytes are computed again in order") {
  Tape tape;
  const Var x = tape.parameter(Tensor::zeros({0}), "x");
  Var y = x;
  for (int i = 0; i < 40; ++i) y = tanh(y * 2.0);
  const Gradients gradients = backward(sum(y), {.planner = uniform({.segments = 4}), .threads = 4});
  CHECK(gradients[x].shape() == Shape{0});
  CHECK(gradients.report().recomputed > 0);
}

}  // namespace
}  // namespace palimpsest::present_test
