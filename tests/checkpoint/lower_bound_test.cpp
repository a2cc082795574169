#include "checkpoint/lower_bound.h"

#include <cmath>

#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "checkpoint/schedule.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"
#include "tests/checkpoint/optimum.h"

namespace lower_bound_test {

using namespace palimpsest;
using Catch::Matchers::WithinRel;

namespace {

Bytes keep_all_peak(const Graph& graph) {
  return simulate(graph, drop_after_last_use(graph, graph.needed_nodes())).peak;
}

}  // namespace

TEST_CASE("lower bound: never above the optimum of tiny graphs") {
  int forced = 0;
  int above_one_pass = 0;
  int infeasible = 0;
  int known_infeasible = 0;
  int graphs = 0;
  for (std::uint32_t seed = 0; graphs < 300; ++seed) {
    const Graph graph = tests::random_graph(seed, 3 + seed % 4);
    if (graph.value_count() > 15) continue;
    ++graphs;
    const double one_pass = graph.one_pass_cost();
    const Bytes most = keep_all_peak(graph);
    CHECK(lower_bound(graph, most) == one_pass);
    for (const int part : {13, 15, 17, 19}) {
      const Bytes budget = most * part / 20;
      const double bound = lower_bound(graph, budget);
      const std::optional<double> optimum = tests::least_cost(graph, budget);
      INFO("seed " << seed << ", budget " << budget);
      if (!optimum) {
        ++infeasible;
        known_infeasible += std::isinf(bound) ? 1 : 0;
        continue;
      }
      REQUIRE(bound <= *optimum);
      REQUIRE(bound >= one_pass);
      if (*optimum == one_pass) continue;
      ++forced;
      above_one_pass += bound > one_pass ? 1 : 0;
    }
  }
  INFO(forced << " forced, " << above_one_pass << " seen; " << infeasible << " infeasible, "
              << known_infeasible << " seen");
  CHECK(forced > 100);
  CHECK(above_one_pass * 10 > forced * 7);
  CHECK(known_infeasible * 10 > infeasible * 7);
}

TEST_CASE("lower bound: a chain keeps what fits and computes the rest again") {
  // During the first backward step, the budget holds its operands and half of the inputs.
  const Graph graph = tests::chain(1000);
  CHECK_THAT(lower_bound(graph, 64 * 500) / graph.one_pass_cost(), WithinRel(1.25, 1e-2));
}

}  // namespace lower_bound_test
