#include "checkpoint/serial_steps.h"

#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "tests/catch.h"

namespace serial_steps_test {

using namespace palimpsest;

namespace {

/// `members` chains of two serial nodes with workspace, from one source; the results are summed.
Graph ensemble(std::uint32_t members, bool serial = true) {
  Graph graph;
  const Graph::Output value{.bytes = 640};
  graph.add_node({}, {&value, 1}, {.source = true});
  ValueId sum = none;
  for (std::uint32_t k = 0; k < members; ++k) {
    ValueId at = 0;
    for (int step = 0; step < 2; ++step) {
      const NodeId node =
          graph.add_node({&at, 1}, {&value, 1}, {.cost = 1, .workspace = 6'400, .serial = serial});
      at = graph.first_output(node);
    }
    const ValueId both[] = {at, sum};
    const NodeId node =
        graph.add_node(std::span(both).first(sum == none ? 1 : 2), {&value, 1}, {.cost = 0.1});
    sum = graph.first_output(node);
  }
  graph.add_target(sum);
  return graph;
}

}  // namespace

TEST_CASE("serial steps: only where some could run at once") {
  const Graph graph = ensemble(3);
  const Plan plan = make_plan(graph, *keep_all());
  const std::vector<std::uint32_t> serial = serial_steps(graph, plan.schedule);
  REQUIRE(serial.size() == 6);
  for (const std::uint32_t k : serial) {
    const Step& step = plan.schedule.steps[k];
    CHECK(step.kind == Step::Kind::compute);
    CHECK(graph.is_serial(step.id));
  }
  CHECK(serial_steps(ensemble(3, false), plan.schedule).empty());
  const Graph chain = ensemble(1);
  CHECK(serial_steps(chain, make_plan(chain, *keep_all()).schedule).empty());
}

TEST_CASE("serial nodes lie apart where there is room, and share memory where not") {
  const Graph graph = ensemble(4);
  const Graph packed = ensemble(4, false);
  const Plan roomy = make_plan(graph, *keep_all());
  const Plan narrow = make_plan(packed, *keep_all());
  CHECK(roomy.predicted_peak() >= narrow.predicted_peak() + 6'400);
  CHECK(roomy.keep_all_peak == narrow.predicted_peak());
  const auto share_memory = [](const Interval& a, const Interval& b) {
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  };
  std::vector<Interval> workspaces;
  for (const Interval& interval : roomy.layout.intervals) {
    if (interval.storage == Interval::workspace) workspaces.push_back(interval);
  }
  REQUIRE(workspaces.size() == 8);
  for (std::size_t i = 0; i + 1 < workspaces.size(); ++i) {
    CHECK_FALSE(share_memory(workspaces[i], workspaces[i + 1]));
  }
  // Only memory of the workspaces is kept apart.
  Graph followed = ensemble(2);
  ValueId at = followed.targets()[0];
  const Graph::Output large{.bytes = 64'000};
  for (int k = 0; k < 50; ++k) {
    at = followed.first_output(followed.add_node({&at, 1}, {&large, 1}, {.cost = 1}));
  }
  followed.add_target(at);
  CHECK(make_plan(followed, *keep_all()).predicted_peak() < 4 * 64'000);
  const Plan tight = make_plan(graph, *keep_all(), narrow.predicted_peak());
  CHECK(tight.predicted_peak() == narrow.predicted_peak());
}

}  // namespace serial_steps_test
