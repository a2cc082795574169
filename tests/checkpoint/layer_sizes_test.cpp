#include "checkpoint/layer_sizes.h"

#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "tests/catch.h"

namespace palimpsest::layer_sizes_test {
namespace {

TEST_CASE("layer sizes: keeping everything holds what each layer makes, and all gradients") {
  const LayerSizes sizes{.layers = 10, .parameters = 1_MiB, .activations = 4_MiB, .seconds = 0.5};
  const Graph graph = graph_of(sizes);
  const Plan all = make_plan(graph, *keep_all(), unlimited);
  // The peak is at the last layer: ten activations and the adjoints before and after it.
  CHECK(all.predicted_peak() >= 10 * 4_MiB + 4_MiB);
  CHECK(all.predicted_peak() <= 10 * 4_MiB + 2 * 4_MiB + 10 * 1_MiB);
  CHECK(graph.one_pass_cost() == 10 * 0.5 * 3);
  CHECK(graph.resident() == 10 * 1_MiB + 4_MiB);
  CHECK(graph.targets().size() == 11);

  const Plan half = make_plan(graph, *automatic({}), all.predicted_peak() * 6 / 10);
  CHECK(half.simulation.recomputed > 0);
  CHECK(half.predicted_peak() <= all.predicted_peak() * 6 / 10);
}

TEST_CASE("layer sizes: without gradients two activations are enough") {
  const Graph graph =
      graph_of({.layers = 5, .parameters = 100, .activations = 1000, .training = false});
  CHECK_FALSE(graph.backward_begins().has_value());
  CHECK(make_plan(graph, *keep_all(), unlimited).predicted_peak() <= 2100);
}

TEST_CASE("layer sizes: numbers out of range are refused") {
  CHECK_THROWS_AS(graph_of({.layers = 0}), ArgumentError);
  CHECK_THROWS_AS(graph_of({.activations = -1}), ArgumentError);
  CHECK_THROWS_AS(graph_of({.seconds = -1}), ArgumentError);
  CHECK_THROWS_AS(graph_of({.backward_part = -1}), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::layer_sizes_test
