#include "checkpoint/recompute_network.h"

#include <algorithm>
#include <limits>

#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace recompute_network_test {

using namespace palimpsest;
using Catch::Matchers::WithinRel;

namespace {

/// The seconds of recomputation if, of the demanded values, only those in `kept` are kept.
double seconds_without(const Graph& graph, const Moment& moment, const std::vector<bool>& kept) {
  std::vector<bool> runs = moment.after;
  double seconds = 0;
  const auto want = [&](ValueId value) {
    const ValueId root = graph.storage(value);
    const NodeId producer = graph.producer(root);
    if (graph.bytes(root) == 0 || moment.there[root] || kept[root] || runs[producer]) return;
    runs[producer] = true;
    seconds += moment.extra[producer];
  };
  for (const ValueId target : graph.targets()) want(target);
  for (NodeId node = graph.node_count(); node-- > 0;) {
    if (!runs[node]) continue;
    for (const ValueId input : graph.inputs(node)) want(input);
  }
  return seconds;
}

}  // namespace

TEST_CASE("recompute network: as good as the best of all sets kept") {
  int compared = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Graph graph = tests::random_graph(seed, 8);
    Moment moment{std::vector<bool>(graph.node_count()), std::vector<double>(graph.node_count()),
                  std::vector<bool>(graph.value_count())};
    for (NodeId node = 0; node < graph.node_count(); ++node) {
      moment.after[node] = node >= graph.backward_begins().value();
      moment.extra[node] = graph.cost(node);
    }
    moment.there[graph.storage(seed % graph.value_count())] = true;
    const RecomputeNetwork network(graph, moment);
    const std::vector<ValueId>& roots = network.keep_all().kept;
    if (roots.size() > 10) continue;
    ++compared;
    CHECK(network.keep_all().seconds == 0);
    CHECK(network.keep_none().seconds ==
          seconds_without(graph, moment, std::vector<bool>(graph.value_count())));
    for (const double price : {0.0, 0.001, 0.01, 0.1, 100.0}) {
      double least = std::numeric_limits<double>::infinity();
      for (std::uint32_t set = 0; set < 1u << roots.size(); ++set) {
        std::vector<bool> kept(graph.value_count());
        Bytes bytes = 0;
        for (std::size_t k = 0; k < roots.size(); ++k) {
          kept[roots[k]] = (set >> k & 1) != 0;
          bytes += kept[roots[k]] ? graph.bytes(roots[k]) : 0;
        }
        least = std::min(least,
                         seconds_without(graph, moment, kept) + price * static_cast<double>(bytes));
      }
      const RecomputeNetwork::Choice choice = network.cheapest(price);
      INFO("seed " << seed << ", price " << price);
      CHECK(choice.value <= least);
      CHECK_THAT(choice.value, WithinRel(least, 1e-9));
      std::vector<bool> kept(graph.value_count());
      for (const ValueId root : choice.kept) kept[root] = true;
      CHECK(choice.seconds == seconds_without(graph, moment, kept));
      CHECK_THAT(choice.seconds + price * static_cast<double>(choice.bytes),
                 WithinRel(least, 1e-9));
    }
  }
  CHECK(compared > 100);
}

TEST_CASE("min cut: gives up what is cheap to make again, keeps what it is made from") {
  tests::GraphBuilder b;
  std::vector<ValueId> dear, cheap{b.source(64)};
  for (int k = 0; k < 50; ++k) {
    dear.push_back(b.node({cheap.back()}, 64, 10));
    cheap.push_back(b.node({dear.back()}, 64, 1));
  }
  ValueId adjoint = cheap.back();
  b.graph.set_backward_begins(b.graph.node_count());
  for (std::size_t k = 50; k-- > 0;) {
    adjoint = b.node({adjoint, dear[k]}, 64, 1);
    adjoint = b.node({adjoint, cheap[k]}, 64, 10);
  }
  b.graph.add_target(adjoint);
  const Plan plan = make_plan(b.graph, *min_cut(), 64 * 53);
  CHECK(plan.simulation.recomputed == 49);
  for (const ValueId value : dear) CHECK_FALSE(plan.recomputes(b.graph.producer(value)));
}

}  // namespace recompute_network_test
