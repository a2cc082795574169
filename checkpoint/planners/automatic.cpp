#include <algorithm>

#include "checkpoint/liveness.h"
#include "checkpoint/permuted.h"
#include "checkpoint/planners/search.h"
#include "checkpoint/rematerialize.h"
#include "checkpoint/reorder.h"

namespace palimpsest {

namespace {

bool has_backward_part(const Graph& graph) {
  const NodeId begins = graph.backward_begins().value_or(0);
  return begins > 0 && std::ranges::any_of(graph.targets(), [&](ValueId target) {
           const NodeId node = graph.producer(target);
           return node >= begins && !graph.is_source(node);
         });
}

/// Where `automatic` starts from: what every other planner proposes.
class Everyone final : public Planner {
 public:
  std::string name() const override { return "everyone"; }

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    std::vector<Proposal> proposals;
    const auto add = [&](const PlannerPtr& planner) {
      for (Proposal& proposal : planner->propose(graph, budget)) {
        proposals.emplace_back(std::move(proposal.schedule), planner->name());
      }
    };
    add(greedy());
    if (has_backward_part(graph)) {
      add(chain());
      add(min_cut());
    }
    add_reordered(graph, budget, proposals);
    const std::size_t nodes = forward_nodes(graph).size();
    for (std::uint32_t count = 2; count <= nodes && count < 4096; count *= 2) {
      add(uniform({.segments = count}));
    }
    return proposals;
  }

 private:
  static void add_reordered(const Graph& graph, Bytes budget, std::vector<Proposal>& proposals) {
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      if (graph.is_present(value)) return;
    }
    constexpr double enough = 0.99;  // of the peak; planning again takes its time
    const auto peak = [&](const Schedule& schedule) {
      return static_cast<double>(simulate(graph, schedule).peak);
    };
    const std::vector<NodeId> order = reorder(graph);
    Schedule once = drop_after_last_use(graph, order);
    if (peak(once) > enough * peak(drop_after_last_use(graph, graph.needed_nodes()))) return;
    const Permuted permuted(graph, order);
    for (Proposal& proposal : greedy()->propose(permuted.graph(), budget)) {
      proposals.emplace_back(permuted.original(std::move(proposal.schedule)), "reordered, greedy");
    }
    proposals.emplace_back(std::move(once), "reordered");
  }
};

}  // namespace

PlannerPtr automatic(SearchSettings settings) {
  return search_from("auto", std::make_shared<Everyone>(), settings);
}

}  // namespace palimpsest
