#include <algorithm>
#include <cmath>

#include "checkpoint/liveness.h"
#include "checkpoint/planners/eviction.h"
#include "checkpoint/planners/retention.h"
#include "checkpoint/rematerialize.h"

namespace palimpsest {

namespace {

class Automatic final : public Planner {
 public:
  std::string name() const override { return "automatic"; }
  bool accepts_keep_all() const override { return true; }

  /// Plans for byte levels that depend on the graph alone, so that a larger budget has every choice
  /// a smaller one has.
  std::vector<Schedule> propose(const Graph& graph, Bytes) const override {
    const Eviction eviction(graph);
    std::vector<Schedule> result;
    const auto add = [&](std::vector<NodeId> order, Bytes level) {
      order = hold_instead(graph, without_useless(graph, order), level);
      result.push_back(drop_after_last_use(graph, order));
    };
    const std::size_t nodes = graph.needed_nodes().size();
    const std::size_t levels =
        std::min(std::clamp<std::size_t>(160'000 / (nodes + 1), 6, 64), nodes + 6);
    const double lowest = static_cast<double>(eviction.lowest_level());
    const double range = static_cast<double>(eviction.highest_level()) - lowest;
    for (std::size_t k = 0; k <= levels; ++k) {
      const double part = std::pow(static_cast<double>(k) / static_cast<double>(levels), 1.5);
      const auto level = static_cast<Bytes>(lowest + part * range);
      if (auto order = eviction.run(level, 8 * nodes + 64)) add(std::move(*order), level);
    }
    for (std::uint32_t count = 2; count <= forward_nodes(graph).size() && count < 4096;
         count *= 2) {
      result.push_back(recompute_segments(graph, all_but_last(equal_segments(graph, count))));
    }
    return result;
  }
};

}  // namespace

PlannerPtr automatic() { return std::make_shared<Automatic>(); }

}  // namespace palimpsest
