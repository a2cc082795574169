#include "autodiff/gradient.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "checkpoint/tape_graph.h"
#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::automatic_test {
namespace {

/// The gradient of a U-Net with three sizes of images.
Graph unet() {
  Tape tape;
  const Var x = tape.constant(Tensor::normal({4, 3, 32, 32}, 1));
  std::vector<Var> weights;
  const auto block = [&](Var y, std::int64_t channels) {
    for (int i = 0; i < 2; ++i) {
      const Tensor start =
          Tensor::normal({channels, y.shape()[1], 3, 3}, 10 + weights.size(), 0, 0.1);
      weights.push_back(tape.parameter(start));
      y = relu(group_norm(conv2d(y, weights.back(), {}, {.padding = 1}), 4));
    }
    return y;
  };
  const Var a = block(x, 8), b = block(max_pool(a, {2}), 16), c = block(max_pool(b, {2}), 32);
  const Var d = block(concat({upsample(c, 2), b}, 1), 16);
  const Var loss = mean(square(block(concat({upsample(d, 2), a}, 1), 8) - 0.5));
  std::vector<ValueId> targets{loss.id()};
  const NodeId backward_begins = tape.node_count();
  for (const Var& each : gradient(loss, weights)) targets.push_back(each.id());
  return graph_of(tape, targets, 1, backward_begins);
}

TEST_CASE(
    "automatic: costs at most what each planner costs that it tries, near the smallest budget") {
  const Graph graph = unet();
  const Bytes all = make_plan(graph, *keep_all()).predicted_peak();
  const PlannerPtr automatic_planner = automatic({.moves = 100});
  const std::vector<PlannerPtr> others{online(), quick(),   greedy(),
                                       chain(),  min_cut(), uniform({.segments = 4})};
  for (int percent = 37; percent <= 46; ++percent) {
    const Bytes budget = all * percent / 100;
    const Plan plan = make_plan(graph, *automatic_planner, budget);
    CHECK(plan.predicted_peak() <= budget);
    for (const PlannerPtr& other : others) {
      CAPTURE(percent, other->name());
      const std::optional<Plan> found = find_plan(graph, *other, budget);
      if (found) CHECK(plan.simulation.cost <= found->simulation.cost * (1 + 1e-12));
    }
    // A candidate that seems cheaper says why it is not the plan.
    for (const Candidate& candidate : plan.candidates) {
      CAPTURE(percent, candidate.planner);
      if (candidate.cost_ratio >= plan.simulation.cost_ratio() * (1 - 1e-12)) continue;
      CHECK_FALSE(candidate.fits);
      CHECK((candidate.peak > budget || candidate.layout > budget));
    }
  }
}

}  // namespace
}  // namespace palimpsest::automatic_test
