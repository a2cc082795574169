#include "checkpoint/schedule.h"

#include <sstream>

#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace schedule_test {

using namespace palimpsest;
using Catch::Matchers::Contains;
using palimpsest::tests::GraphBuilder;

namespace {

using Steps = std::vector<Step>;
constexpr auto compute = Step::compute;
constexpr auto drop = Step::drop;

/// x → a (100 B, workspace 30) → b (10 B) → c (1 B, reads a and b), and view v of a; target c.
struct Sample {
  GraphBuilder b;
  ValueId x = b.source(1000);
  ValueId a = b.node({x}, 100, 1, 30);
  ValueId low = b.node({a}, 10, 2);
  ValueId v = b.view(a);
  ValueId c = b.node({v, low}, 1, 4);
  Sample() { b.graph.add_target(c); }
};

std::string error_of(const Graph& graph, Steps steps) {
  try {
    simulate(graph, {std::move(steps)});
  } catch (const ScheduleError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("simulate: what takes over an input counts once with it, where that is given up") {
  GraphBuilder b;
  const ValueId x = b.source(1000);
  const ValueId a = b.node({x}, 100);
  const ValueId v = b.view(a);
  const ValueId inputs[] = {x, a};
  const Graph::Output output{100, -1, 1};
  const NodeId taker = b.graph.add_node(inputs, {&output, 1}, {.cost = 1, .workspace = 7});
  const ValueId made = b.graph.first_output(taker);
  b.graph.add_target(made);
  const auto timeline = [&](Steps steps) { return simulate(b.graph, {std::move(steps)}).timeline; };
  CHECK(timeline({compute(1), compute(taker), drop(a)}) == std::vector<Bytes>{100, 107, 100});
  CHECK(timeline({compute(1), compute(2), compute(taker), drop(v), drop(a)}) ==
        std::vector<Bytes>{100, 100, 107, 100, 100});
  CHECK(timeline({compute(1), compute(2), drop(a), compute(1), compute(taker), drop(v), drop(a)}) ==
        std::vector<Bytes>{100, 100, 100, 100, 107, 100, 100});
  // A storage that a view holds, or that is not dropped at once, stays next to the output.
  CHECK(timeline({compute(1), compute(2), compute(taker), drop(a), compute(1), drop(v), drop(a)}) ==
        std::vector<Bytes>{100, 100, 207, 200, 200, 200, 200});
  CHECK(timeline({compute(1), compute(taker), compute(2), drop(v), drop(a)}) ==
        std::vector<Bytes>{100, 207, 200, 200, 200});
  // An output that is computed again in place takes nothing over.
  CHECK(timeline({compute(1), compute(taker), compute(taker), drop(a)}) ==
        std::vector<Bytes>{100, 207, 207, 200});
}

TEST_CASE("simulate: bytes, peak and cost of a schedule computed by hand") {
  const Sample s;
  const Simulation plain = simulate(s.b.graph, {{compute(1), compute(2), compute(3), drop(s.a),
                                                 compute(4), drop(s.v), drop(s.low)}});
  CHECK(plain.timeline == std::vector<Bytes>{130, 110, 110, 110, 111, 111, 11});
  CHECK(plain.peak == 130);
  CHECK(plain.cost == 7);
  CHECK(plain.one_pass_cost == 7);
  CHECK(plain.cost_ratio() == 1);
  CHECK(plain.computed == 4);
  CHECK(plain.recomputed == 0);

  const Simulation again =
      simulate(s.b.graph, {{compute(1), compute(2), drop(s.a), compute(1), compute(3), drop(s.a),
                            compute(4), drop(s.v), drop(s.low)}});
  CHECK(again.timeline == std::vector<Bytes>{130, 110, 110, 140, 110, 110, 111, 111, 11});
  CHECK(again.peak == 140);
  CHECK(again.cost == 8);
  CHECK(again.recomputed == 1);
}

TEST_CASE("simulate: an output live already is written in place") {
  const Sample s;
  const Simulation twice = simulate(s.b.graph, {{compute(1), compute(1), compute(2), compute(3),
                                                 compute(4), drop(s.a), drop(s.v), drop(s.low)}});
  CHECK(twice.timeline[1] == 130);
  CHECK(twice.recomputed == 1);
}

TEST_CASE("simulate: present values count from the start") {
  Sample s;
  s.b.graph.set_present(s.a);
  const Simulation run = simulate(
      s.b.graph, {{compute(3), compute(2), drop(s.a), compute(4), drop(s.v), drop(s.low)}});
  CHECK(run.timeline.front() == 100);
  CHECK(run.one_pass_cost == 6);
  s.b.graph.set_present(s.c);
  CHECK(simulate(s.b.graph, {{drop(s.a)}}).peak == 101);
}

TEST_CASE("simulate: each rule, broken, names the step and the value") {
  const Sample s;
  const Graph& g = s.b.graph;
  const std::vector<std::pair<Steps, std::string>> rows{
      {{compute(2)}, "step 0, compute 2 (#2): input value 1 (of #1) is not live"},
      {{compute(1), drop(1), compute(2)},
       "step 2, compute 2 (#2): input value 1 (of #1) is not live"},
      {{compute(0)}, "a source is never computed"},
      {{compute(9)}, "step 0, compute 9: the node does not exist"},
      {{drop(0)}, "a source is never dropped"},
      {{drop(1)}, "step 0, drop 1: the value is not live"},
      {{compute(1), drop(1), drop(1)}, "step 2, drop 1: the value is not live"},
      {{drop(9)}, "the value does not exist"},
      {{}, "target value 4 (of #4) is not live"},
      {{compute(1), compute(2), compute(3), compute(4), drop(1), drop(2), drop(3), drop(4)},
       "target value 4 (of #4) is not live"},
      {{compute(1), compute(2), compute(3), compute(4), drop(1), drop(3)},
       "value 2 (of #2) is live but not a target"},
  };
  for (const auto& [steps, words] : rows) CHECK_THAT(error_of(g, steps), Contains(words));
}

TEST_CASE("simulate: a present value that is no target must go") {
  Sample s;
  s.b.graph.set_present(s.a);
  s.b.graph.set_present(s.c);
  CHECK_THAT(error_of(s.b.graph, {}), Contains("value 1 (of #1) is live but not a target"));
}

TEST_CASE("print: one step a line") {
  GraphBuilder b;
  const ValueId x = b.source();
  const Graph::Output output{4, -1};
  b.graph.add_node(std::vector{x}, {&output, 1}, {.cost = 1, .name = "matmul"});
  std::ostringstream text;
  print(text, b.graph, {{compute(1), drop(1)}});
  CHECK(text.str() == "compute 1 (matmul)\ndrop 1\n");
}

TEST_CASE("liveness: values go after their last use, unread ones at once") {
  GraphBuilder b;
  const ValueId x = b.source();
  const ValueId present = b.node({x}, 8);
  const std::vector<Graph::Output> two{{8, -1}, {8, -1}};
  b.graph.add_node(std::vector{x}, two, {});  // node 2, values 2 and 3
  const ValueId c = b.node({2, present}, 8);  // node 3, value 4
  b.graph.add_target(c);
  b.graph.set_present(present);
  const ValueId idle = b.node({c}, 8);
  b.graph.set_present(idle);
  CHECK(drop_after_last_use(b.graph, b.graph.needed_nodes()).steps ==
        Steps{drop(idle), compute(2), drop(3), compute(3), drop(2), drop(present)});
  const std::vector<NodeId> twice{2, 2, 1, 3, 4, 3};
  CHECK(without_useless(b.graph, twice) == std::vector<NodeId>{2, 1, 3});
  CHECK_THROWS_AS(drop_after_last_use(b.graph, std::vector<NodeId>{3}), InternalError);
}

}  // namespace schedule_test
