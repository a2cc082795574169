#include <algorithm>
#include <string>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/execution/models.h"
#include "tests/temporary_directory.h"

namespace given_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

/// A model on its own tape.
struct Recorded {
  Tape tape;
  Var loss;

  explicit Recorded(const SmallModel& model) {
    std::vector<Var> parameters;
    std::vector<Var> batch;
    for (const Tensor& each : model.parameters) parameters.push_back(tape.parameter(each));
    for (const Tensor& each : model.batch) batch.push_back(tape.constant(each));
    loss = model.loss(tape, parameters, batch).loss;
  }
};

std::vector<SmallModel> models() {
  return {perceptron(), small_transformer(), small_convolution(), heat(), with_dropout()};
}

void check_same(const Gradients& found, const Gradients& expected) {
  CHECK(same_bits(found.loss(), expected.loss()));
  REQUIRE(found.entries().size() == expected.entries().size());
  for (std::size_t i = 0; i < found.entries().size(); ++i) {
    CHECK(same_bits(found.entries()[i].gradient, expected.entries()[i].gradient));
  }
}

/// The graph that `write_graph` writes with these options.
Graph written(const Var& loss, const RunOptions& options) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/g.json";
  write_graph(loss, path, options);
  return read_graph(path);
}

Schedule through_a_file(const Schedule& schedule) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/s.json";
  write_schedule(schedule, path);
  return read_schedule(path);
}

}  // namespace

TEST_CASE("given: backward follows schedules of the graph that it has written") {
  for (const SmallModel& model : models()) {
    CAPTURE(model.name);
    const Gradients expected = backward(Recorded(model).loss);
    for (const RunOptions& written_with :
         {RunOptions{.threads = 1}, RunOptions{.threads = 1, .fuse = false},
          RunOptions{.threads = 1, .simplify = false},
          RunOptions{.threads = 1, .fuse = false, .simplify = false}}) {
      const Graph graph = written(Recorded(model).loss, written_with);
      const Bytes everything = make_plan(graph, *keep_all()).predicted_peak();
      const Bytes smallest = smallest_budget(graph, *greedy());
      for (const Bytes budget : {everything, (everything + smallest) / 2, smallest}) {
        const Plan plan = make_plan(graph, *greedy(), budget);
        const PlannerPtr planner = given(through_a_file(plan.schedule));
        const Gradients found = backward(
            Recorded(model).loss, {.memory_budget = budget, .planner = planner, .threads = 1});
        check_same(found, expected);
        CHECK(found.report().planner == "given");
        CHECK(found.report().computed == plan.simulation.computed);
        CHECK(found.report().recomputed == plan.simulation.recomputed);
        CHECK(found.report().measured_peak <= budget);
        check_same(backward(Recorded(model).loss, {.planner = planner, .threads = 3}), expected);
      }
    }
  }
}

TEST_CASE("given: one tape, a program, and a plan that was never written") {
  const SmallModel model = small_transformer();
  Recorded recorded(model);
  const Gradients expected = backward(recorded.loss);
  const Plan everything = plan_backward(recorded.loss);
  const Plan plan = plan_backward(
      recorded.loss, {.memory_budget = everything.predicted_peak() * 8 / 10, .planner = quick()});
  const PlannerPtr planner = given(plan.schedule);
  for (int times = 0; times < 3; ++times) {
    const Gradients found = backward(recorded.loss, {.planner = planner});
    check_same(found, expected);
    CHECK(found.report().recomputed == plan.simulation.recomputed);
  }
  CHECK(plan_backward(recorded.loss, {.planner = planner}).runs == plan.runs);
  Runner runner(Program::gradients(
      [&](Tape& tape) {
        std::vector<Var> parameters;
        std::vector<Var> batch;
        for (const Tensor& each : model.parameters) parameters.push_back(tape.parameter(each));
        for (const Tensor& each : model.batch) batch.push_back(tape.constant(each));
        return model.loss(tape, parameters, batch);
      },
      {.planner = planner}));
  runner.run();
  check_same(runner.gradients(), expected);
}

TEST_CASE("given: a graph file holds what backward with the same options plans") {
  for (const SmallModel& model : models()) {
    CAPTURE(model.name);
    const Bytes everything = plan_backward(Recorded(model).loss).predicted_peak();
    for (const double share : {1.0, 0.8, 0.6}) {
      for (const bool fuse : {true, false}) {
        for (const bool simplify : {true, false}) {
          const auto budget = static_cast<Bytes>(share * static_cast<double>(everything));
          const RunOptions options{
              .memory_budget = budget, .threads = 2, .fuse = fuse, .simplify = simplify};
          const Graph graph = written(Recorded(model).loss, options);
          const ScheduledGraph described = ScheduledGraph::of(graph);
          try {
            const Plan plan = plan_backward(Recorded(model).loss, options);
            CHECK(plan.schedule.graph == described);
            CHECK(simulate(graph, plan.schedule).peak == plan.simulation.peak);
          } catch (const BudgetError&) {
            CHECK(written(Recorded(model).loss,
                          {.threads = 2, .fuse = fuse, .simplify = simplify}) == graph);
          }
        }
      }
    }
  }
}

TEST_CASE("given: a graph file says which nodes of the tape run together") {
  Recorded recorded(perceptron());
  const NodeId recorded_nodes = recorded.tape.node_count();
  const Graph graph = written(recorded.loss, {});
  REQUIRE(graph.form().has_value());
  CHECK(graph.form()->fuse);
  bool has_group = false;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    const auto members = graph.tape_nodes(node);
    REQUIRE_FALSE(members.empty());
    has_group = has_group || members.size() > 1;
    if (members.size() == 1 && members[0] < recorded_nodes) {
      CHECK((graph.is_source(node) == recorded.tape.is_leaf(members[0])));
    }
  }
  CHECK(has_group);
  const Graph apart = written(recorded.loss, {.fuse = false});
  CHECK_FALSE(apart.form()->fuse);
  for (NodeId node = 0; node < apart.node_count(); ++node) {
    REQUIRE(apart.tape_nodes(node).size() == 1);
    CHECK(apart.tape_nodes(node)[0] == node);
  }
}

TEST_CASE("given: a schedule that does not fit says what differs") {
  const Recorded recorded(perceptron());
  const Plan plan = plan_backward(recorded.loss);
  REQUIRE(plan.schedule.graph.has_value());
  const auto follow = [](const Var& loss, const Schedule& schedule, RunOptions options = {}) {
    options.planner = given(schedule);
    backward(loss, options);
  };
  const std::string nodes = std::to_string(plan.schedule.graph->nodes) + " nodes";
  const std::string here =
      std::to_string(plan_backward(Recorded(heat()).loss).schedule.graph->nodes) + " nodes";
  CHECK_THROWS_AS(follow(Recorded(heat()).loss, plan.schedule), ScheduleError);
  CHECK_THROWS_WITH(follow(Recorded(heat()).loss, plan.schedule),
                    Contains("the schedule is for a graph of " + nodes) && Contains(here));
  Schedule other = plan.schedule;
  other.graph->wiring ^= 1;
  CHECK_THROWS_WITH(follow(recorded.loss, other), Contains("that are wired differently"));
  CHECK_THROWS_AS(follow(recorded.loss, plan.schedule, {.fuse = false}), ScheduleError);
  CHECK_THROWS_WITH(follow(recorded.loss, plan.schedule, {.fuse = false}),
                    Contains("fused") && Contains("RunOptions::fuse"));
  CHECK_THROWS_WITH(follow(recorded.loss, plan.schedule, {.anomaly = true}),
                    Contains("RunOptions::anomaly"));

  // A schedule without a description of its graph names the nodes of the tape, as in older files.
  const Schedule unsaid{
      plan_backward(recorded.loss, {.fuse = false, .simplify = false}).schedule.steps};
  CHECK_NOTHROW(follow(recorded.loss, unsaid));
  CHECK_NOTHROW(follow(recorded.loss, unsaid, {.anomaly = true}));
  CHECK_THROWS_AS(follow(recorded.loss, Schedule{plan.schedule.steps}), ScheduleError);
}

}  // namespace given_test
