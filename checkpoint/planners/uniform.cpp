#include <algorithm>

#include "checkpoint/engine_planner.h"
#include "checkpoint/rematerialize.h"

namespace palimpsest {

namespace {

class UniformPlanner final : public EnginePlanner {
 public:
  explicit UniformPlanner(Uniform settings) : settings_(settings) {
    if ((settings.segments == 0) == (settings.every == 0)) {
      throw ArgumentError("[uniform] segments is " + std::to_string(settings.segments) +
                          " and every is " + std::to_string(settings.every) +
                          "; give either of them, and not 0");
    }
  }

  std::string name() const override {
    if (settings_.segments > 0)
      return "uniform, " + std::to_string(settings_.segments) + " segments";
    return "uniform, every " + std::to_string(settings_.every) + " nodes";
  }

  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    return {recompute_segments(graph, all_but_last(segments_of(graph)))};
  }

  std::uint32_t states_of_loop(std::uint32_t steps) const override {
    if (settings_.segments > 0) return settings_.segments;
    return steps / settings_.every + (steps % settings_.every > 0 ? 1 : 0);
  }

 private:
  std::vector<Segment> segments_of(const Graph& graph) const {
    if (settings_.segments > 0) return equal_segments(graph, settings_.segments);
    const std::vector<NodeId> forward = forward_nodes(graph);
    std::vector<Segment> result;
    for (std::size_t k = 0; k < forward.size(); k += settings_.every) {
      result.push_back({forward[k], forward[std::min(k + settings_.every, forward.size()) - 1]});
    }
    return result;
  }

  Uniform settings_;
};

}  // namespace

PlannerPtr uniform(Uniform settings) { return std::make_shared<UniformPlanner>(settings); }

}  // namespace palimpsest
