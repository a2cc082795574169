#include <iterator>

#include "checkpoint/planners/search.h"
#include "checkpoint/rematerialize.h"

namespace palimpsest {

namespace {

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
    // On small graphs they take longer than they save.
    constexpr std::uint32_t large = 500;
    if (graph.node_count() >= large && graph.backward_begins().value_or(0) > 0) {
      add(chain());
      add(min_cut());
    }
    const std::size_t nodes = forward_nodes(graph).size();
    for (std::uint32_t count = 2; count <= nodes && count < 4096; count *= 2) {
      add(uniform({.segments = count}));
    }
    return proposals;
  }
};

}  // namespace

PlannerPtr automatic(SearchSettings settings) {
  return search_from("auto", std::make_shared<Everyone>(), settings);
}

}  // namespace palimpsest
