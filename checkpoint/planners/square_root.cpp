#include <cmath>

#include "checkpoint/engine_planner.h"
#include "checkpoint/rematerialize.h"

namespace palimpsest {

namespace {

class SquareRoot final : public EnginePlanner {
 public:
  std::string name() const override { return "square root"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    const auto nodes = static_cast<std::uint32_t>(forward_nodes(graph).size());
    return {recompute_segments(graph, all_but_last(equal_segments(graph, root_of(nodes))))};
  }
  std::uint32_t states_of_loop(std::uint32_t steps) const override { return root_of(steps); }

 private:
  static std::uint32_t root_of(std::uint32_t count) {
    return static_cast<std::uint32_t>(std::lround(std::sqrt(static_cast<double>(count))));
  }
};

}  // namespace

PlannerPtr square_root() { return std::make_shared<SquareRoot>(); }

}  // namespace palimpsest
