#include <cmath>

#include "checkpoint/rematerialize.h"

namespace palimpsest {

namespace {

class SquareRoot final : public Planner {
 public:
  std::string name() const override { return "square root"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    const double nodes = static_cast<double>(forward_nodes(graph).size());
    const auto count = static_cast<std::uint32_t>(std::lround(std::sqrt(nodes)));
    return {recompute_segments(graph, all_but_last(equal_segments(graph, count)))};
  }
};

}  // namespace

PlannerPtr square_root() { return std::make_shared<SquareRoot>(); }

}  // namespace palimpsest
