#include "strategy/backward.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <thread>

#include "checkpoint/dot.h"
#include "checkpoint/planners.h"
#include "checkpoint/planning_files.h"
#include "strategy/evaluators/engine.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/program.h"
#include "tests/catch.h"
#include "tests/strategy/random_program.h"
#include "tests/temporary_file.h"

namespace palimpsest::backward_test {
namespace {

using Catch::Matchers::Contains;

struct Quadratic {
  Tape tape;
  Var x, unused, loss;

  explicit Quadratic(std::shared_ptr<EngineEvaluator> evaluator = nullptr) : tape(evaluator) {
    x = tape.parameter(Tensor::vector({1, 2, 3}), "x");
    unused = tape.parameter(Tensor::vector({7}), "unused");
    loss = sum(x * x).named("loss");
  }
};

TEST_CASE("backward gives a gradient for every parameter and the loss") {
  Quadratic q;
  const Gradients gradients = backward(q.loss);
  CHECK(gradients.loss().item() == 14);
  CHECK(same_bits(gradients[q.x], Tensor::vector({2, 4, 6})));
  CHECK(same_bits(gradients[q.unused], Tensor::vector({0})));
  CHECK(gradients.entries().size() == 2);
  CHECK_THROWS_WITH(gradients[q.loss], Contains("not a parameter") && Contains("gradient(y, x)"));
}

/// Many small steps, which a fast planner plans first.
Var long_chain(Tape& tape) {
  const Var weight = tape.parameter(Tensor::normal({16, 16}, 2, 0, 0.2), "weight");
  Var y = tape.parameter(Tensor::normal({16, 16}, 1), "start");
  for (int step = 0; step < 60; ++step) y = matmul(sin(y), weight);
  return sum(y);
}

TEST_CASE("backward follows the plan that plan_backward found") {
  Tape alone;
  const Var loss = long_chain(alone);
  const RunOptions options{.memory_budget = plan_backward(loss).predicted_peak() / 2};
  Tape planned;
  const Var same = long_chain(planned);
  const Plan plan = plan_backward(same, options);
  const Report report = backward(same, options).report();
  CHECK(report.predicted_peak == plan.predicted_peak());
  CHECK(report.recomputed == plan.simulation.recomputed);
  CHECK(plan.simulation.recomputed > 0);
  // The other way round: the plan that serves is replaced.
  backward(loss, options);
  const Plan later = plan_backward(loss, options);
  CHECK(later.simulation.cost <= plan.simulation.cost * (1 + 1e-9));
  CHECK(backward(loss, options).report().recomputed == later.simulation.recomputed);
}

TEST_CASE("a refused budget names the operation that needs most, and its line") {
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({40, 40}, 1));
  const Var loss = sum(sin(matmul(x, x)));
  CHECK_THROWS_WITH(backward(loss, {.memory_budget = 1000, .threads = 1}),
                    Contains("matmul") && Contains("backward_test.cpp:") &&
                        Contains("alone takes ") && Contains("record smaller operations") &&
                        !Contains("fewer threads"));
  CHECK_THROWS_WITH(backward(loss, {.memory_budget = 1000, .threads = 2}),
                    Contains("fewer threads"));
  // The named budget is enough.
  const Var small = sum(tape.parameter(Tensor::zeros({1000})));
  try {
    backward(small, {.memory_budget = 1000});
    FAIL("the budget was enough");
  } catch (const BudgetError& error) {
    CHECK(backward(small, {.memory_budget = error.smallest_feasible()}).report().measured_peak <=
          error.smallest_feasible());
  }
}

TEST_CASE("one value is evaluated within a budget") {
  Quadratic q;
  const Report report = evaluate(q.loss, {.memory_budget = 1_KiB});
  CHECK(report.measured_peak <= 1_KiB);
  CHECK(q.loss.item() == 14);
}

TEST_CASE("backward leaves the tape as it was recorded") {
  Quadratic q;
  const std::uint32_t nodes = q.tape.node_count();
  backward(q.loss);
  backward(q.loss);
  CHECK(q.tape.node_count() == nodes);
  CHECK(q.loss.item() == 14);
}

TEST_CASE("wrong calls of backward say what to do") {
  Quadratic q;
  CHECK_THROWS_WITH(backward(q.x * 2.0),
                    Contains("[backward]") && Contains("(3)") && Contains("sum()"));
  CHECK_THROWS_AS(backward(Var()), TapeError);
  CHECK_THROWS_WITH(backward(q.loss, {.memory_budget = -1}), Contains("256_MiB"));
  CHECK_THROWS_WITH(backward(q.loss, {.threads = -2}), Contains("-2 threads"));
  Tape constants;
  const Var fixed = sum(constants.constant(Tensor::vector({1, 2})));
  CHECK_THROWS_WITH(backward(fixed), Contains("[backward]") && Contains("no parameters") &&
                                         Contains("evaluate()") && Contains("backward_test.cpp:"));
  CHECK_THROWS_WITH(
      Program::gradients([](Tape& tape) { return sum(tape.constant(Tensor::vector({1, 2}))); }),
      Contains("no parameters") && Contains("Program::values()"));
  const Var integer = q.tape.constant(Tensor::arange(1));
  CHECK_THROWS_AS(backward(integer), DTypeError);
  CHECK_THROWS_WITH(eager({.planner = keep_all()}), Contains("[eager]") && Contains("backward()"));
  CHECK_THROWS_WITH(eager({.memory_budget = -1}), Contains("[eager]") && Contains("256_MiB"));
  for (const AllocationPolicy memory :
       {AllocationPolicy::pooled, AllocationPolicy::standard, AllocationPolicy::cached}) {
    CHECK_THROWS_WITH(
        eager({.memory = memory}),
        Contains("[eager] memory = " + std::string(name_of(memory))) && Contains("backward()"));
  }
  CHECK_THROWS_WITH(eager({.profile = true}), Contains("[eager]") && Contains("backward()"));
}

TEST_CASE("the budget of a tape's evaluator holds for calls that have none") {
  const auto loss_on = [](Tape& tape) {
    Var y = tape.parameter(Tensor::full({1'000}, 0.5, DType::f64));
    for (int k = 0; k < 12; ++k) y = sin(cumsum(y, 0) * 1e-3);
    return sum(y);
  };
  Tape free;
  const Gradients all = backward(loss_on(free));
  const Bytes budget = all.report().measured_peak / 2;
  const RunOptions options{.memory_budget = budget};
  for (const std::shared_ptr<EngineEvaluator>& evaluator :
       {lazy(options), hybrid(options, {.nodes = 5}), eager(options),
        precise({PrecisionKind::full}, lazy(options))}) {
    Tape tape(evaluator);
    const Var loss = loss_on(tape);
    CHECK(plan_backward(loss).predicted_peak() <= budget);
    const Gradients found = backward(loss);
    CHECK(found.report().budget == budget);
    CHECK(found.report().measured_peak <= budget);
    CHECK(same_bits(found.entries()[0].gradient, all.entries()[0].gradient));
    CHECK_THROWS_AS(backward(loss, {.memory_budget = 100}), BudgetError);
    CHECK(evaluate({&loss, 1}).budget == budget);
    CHECK(evaluate({&loss, 1}, {.memory_budget = 2 * budget}).budget == 2 * budget);
  }
}

TEST_CASE("a lazy tape computes nothing before it is asked, an eager one at once") {
  Quadratic late(lazy());
  CHECK_FALSE(late.tape.has_value(late.loss.id()));
  Quadratic early(eager());
  CHECK(early.tape.has_value(early.loss.id()));
  CHECK(early.loss.item() == late.loss.item());
}

TEST_CASE("without a budget an eager tape keeps what was computed, with one it lets go") {
  Quadratic kept(eager());
  const Var square = kept.x * kept.x;
  const Var loss = sum(square);
  backward(loss);
  CHECK(kept.tape.has_value(square.id()));
  backward(loss, {.memory_budget = 1_MiB});
  CHECK_FALSE(kept.tape.has_value(square.id()));
  CHECK(same_bits(square.value(), Tensor::vector({1, 4, 9})));
}

TEST_CASE("anomaly mode names the operation, the node, the line and the input") {
  for (const auto& evaluator : {lazy(), eager()}) {
    Tape tape(evaluator);
    const auto scope = tape.scope("layer1");
    const Var x = tape.parameter(Tensor::vector({1, 0, 4}), "x");
    const Var loss = sum(log(x).named("logarithm"));
    for (const int threads : {1, 2}) {
      CHECK_THROWS_WITH(backward(loss, {.threads = threads, .anomaly = true}),
                        Contains("[log]") || Contains("[divide]"));
    }
    CHECK(std::isinf(loss.item()));  // the tape remains usable
    CHECK(std::isinf(backward(loss).loss().item()));
  }
  Tape tape;
  const auto scope = tape.scope("layer1");
  const Var x = tape.parameter(Tensor::vector({1, 0, 4}), "x");
  const Var loss = sum(log(x).named("logarithm"));
  CHECK_THROWS_WITH(backward(loss, {.anomaly = true}),
                    Contains("[log]") && Contains("layer1/logarithm") &&
                        Contains("backward_test.cpp:") && Contains("f32 (3)") &&
                        Contains("[0, 4]"));
}

TEST_CASE("an eager anomaly is thrown where the operation is recorded and takes it off the tape") {
  Tape tape(eager({.anomaly = true}));
  const Var x = tape.parameter(Tensor::vector({0}));
  const std::uint32_t nodes = tape.node_count();
  CHECK_THROWS_AS(log(x), AnomalyError);
  CHECK(tape.node_count() == nodes);
}

TEST_CASE("one structure is planned once") {
  auto evaluator = lazy();
  Engine& engine = evaluator->engine();
  Tape tape(evaluator);
  for (int step = 0; step < 5; ++step) {
    tape.clear();
    const RandomProgram program = record_random(tape, 11, 30);
    const Gradients gradients = backward(program.loss, {.memory_budget = 1_MiB});
    CHECK(gradients.report().plan_reused == (step > 0));
  }
  CHECK(engine.plans_made() == 1);
  tape.clear();
  backward(record_random(tape, 12, 30).loss, {.memory_budget = 1_MiB});
  CHECK(engine.plans_made() == 2);
}

TEST_CASE("a planner with other settings makes another plan") {
  Tape tape;
  Var x = tape.parameter(Tensor::vector({0.1, 0.2}));
  for (int step = 0; step < 20; ++step) x = sin(x);
  const Var loss = sum(x);
  const auto recomputed = [&](const PlannerPtr& planner) {
    return backward(loss, {.planner = planner}).report().recomputed;
  };
  CHECK(recomputed(selected({{2, 5}})) != recomputed(selected({{2, 9}})));
  CHECK(fraction(0.5)->key() != fraction(0.5000001)->key());
}

TEST_CASE("a graph file holds what backward plans, on an eager tape too") {
  const TemporaryFile file;
  for (const auto& evaluator : {lazy(), eager()}) {
    Quadratic q(evaluator);
    const std::uint32_t nodes = q.tape.node_count();
    write_graph(q.loss, file.path());
    CHECK(q.tape.node_count() == nodes);
    const Graph graph = read_graph(file.path());
    CHECK(graph.backward_begins() == nodes);
    CHECK(graph.targets().size() == 3);
    CHECK(graph.describe(q.loss.node()) == "loss");
    const Plan plan = make_plan(graph, *keep_all());
    CHECK(plan.schedule == plan_backward(Quadratic().loss, {.threads = 1}).schedule);
  }
  CHECK_THROWS_WITH(write_graph(Quadratic().x, file.path()), Contains("not one element"));
  CHECK_THROWS_AS(write_graph(Var(), file.path()), TapeError);
}

TEST_CASE("a plan of backward counts how often nodes of the tape run, and is drawn") {
  Tape tape;
  const Var x = tape.parameter(Tensor::uniform({1000}, 1, -1, 1, DType::f64), "x");
  std::vector<Var> chain{x};
  for (int i = 0; i < 20; ++i)
    chain.push_back(matmul(softmax(chain.back()), full_like(x, 0.5)) * x);
  const Var loss = sum(chain.back());
  const std::uint32_t nodes = tape.node_count();
  const Bytes budget = plan_backward(loss).predicted_peak() / 2;
  const Plan plan = plan_backward(loss, {.memory_budget = budget});
  CHECK(plan.runs.size() > nodes);  // includes adjoint nodes
  CHECK(plan.runs[x.node()] == 0);
  CHECK(plan.runs[loss.node()] == 1);
  CHECK_FALSE(plan.recomputes(loss.node()));
  const auto recomputed =
      std::ranges::count_if(plan.runs, [](std::uint32_t runs) { return runs > 1; });
  CHECK(recomputed > 0);
  std::ostringstream stream;
  write_dot(stream, loss, {.memory_budget = budget});
  CHECK(tape.node_count() == nodes);
  const std::string text = stream.str();
  CHECK_THAT(text, Contains("x parameter #0") && Contains("computed 2 times") &&
                       Contains("fillcolor=palegreen"));
  CHECK(std::ranges::count(text, '\n') > std::ranges::count(plan.runs, 1u));
  CHECK_THROWS_WITH(write_dot(stream, tape, Schedule{{Step::compute(nodes)}}),
                    Contains("[write_dot]") && Contains("write_dot(stream, loss)"));
}

TEST_CASE("gradients that are kept stay as they were through later runs") {
  auto evaluator = lazy();
  Tape tape(evaluator);
  std::vector<Tensor> kept, copies;
  for (std::uint64_t step = 0; step < 6; ++step) {
    tape.clear();
    const RandomProgram program = record_random(tape, 20 + step % 2, 30);
    const Gradients gradients = backward(program.loss);
    kept.push_back(gradients[program.parameters[step % 3]]);
    copies.push_back(kept.back().clone());
    for (std::size_t i = 0; i < kept.size(); ++i) CHECK(same_bits(kept[i], copies[i]));
  }
}

TEST_CASE("nothing is held once the results are gone") {
  auto evaluator = lazy();
  Engine& engine = evaluator->engine();
  {
    Tape tape(evaluator);
    const RandomProgram program = record_random(tape, 3, 40);
    backward(program.loss);
    CHECK_THROWS_AS(backward(program.loss, {.memory_budget = 1}), BudgetError);
    const Var bad = sum(log(program.loss * 0.0));
    CHECK_THROWS_AS(backward(bad, {.threads = 2, .anomaly = true}), AnomalyError);
    program.values[0].value();
  }
  CHECK(engine.meter().live() == 0);
}

TEST_CASE("several values are computed in one planned run") {
  Quadratic q;
  const Var cube = q.x * q.x * q.x;
  const Report report = evaluate(std::vector<Var>{q.loss, cube}, {.fuse = false});
  CHECK(q.tape.has_value(q.loss.id()));
  CHECK(same_bits(cube.value(), Tensor::vector({1, 8, 27})));
  CHECK(report.computed == 3);  // x·x runs once
  CHECK(report.common_subexpressions == 1);
}

TEST_CASE("a tape changed after backward can be differentiated again") {
  Quadratic q;
  backward(q.loss);
  const Var more = q.loss + sum(exp(q.unused));
  const Gradients gradients = backward(more);
  CHECK_THAT(gradients[q.unused].item(), Catch::Matchers::WithinRel(std::exp(7.0), 1e-6));
}

TEST_CASE("tapes on different threads are independent") {
  std::vector<Tensor> expected;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Tape tape;
    const RandomProgram program = record_random(tape, seed + 1, 40);
    expected.push_back(backward(program.loss, {.threads = 1})[program.parameters[1]].clone());
  }
  std::vector<int> agreed(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        Tape tape;
        const RandomProgram program = record_random(tape, t + 1, 40);
        agreed[t] +=
            same_bits(backward(program.loss, {.threads = 2})[program.parameters[1]], expected[t]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : agreed) CHECK(count == 5);
}

TEST_CASE("a chain of many steps runs on one thread and on several without recursion") {
  for (const int threads : {1, 4}) {
    Tape tape;
    const Var x = tape.parameter(Tensor::scalar(0.5));
    Var y = x;
    for (int i = 0; i < 100'000; ++i) y = y * 1.0;
    CHECK(backward(y, {.threads = threads})[x].item() == 1);
  }
}

}  // namespace
}  // namespace palimpsest::backward_test
