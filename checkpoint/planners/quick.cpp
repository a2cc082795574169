#include "checkpoint/engine_planner.h"
#include "checkpoint/layout.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/eviction.h"
#include "checkpoint/planners/retention.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

class Quick final : public EnginePlanner {
 public:
  std::string name() const override { return "quick"; }
  bool accepts_keep_all() const override { return true; }

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    const Eviction eviction(graph);
    const std::size_t most_steps = 8 * graph.needed_nodes().size() + 64;
    const auto schedule_at = [&](Bytes level) -> std::optional<Schedule> {
      const auto order = eviction.run(level, most_steps);
      if (!order) return {};
      return drop_after_last_use(graph, hold_instead(graph, without_useless(graph, *order), level));
    };
    // A layout takes as long as everything else here. With many intervals its size is close to the
    // live bytes.
    constexpr std::size_t many = 2000;
    const auto size = [&](const Schedule& schedule) {
      if (schedule.steps.size() > many) return simulate(graph, schedule).peak;
      return lay_out_quickly(graph, schedule, budget).size;
    };
    // If a step overshoots or the layout is larger, try a lower level.
    for (const Bytes part : {50, 16, 6}) {
      const Bytes level = budget - budget / part;
      if (level < eviction.lowest_level()) break;
      std::optional<Schedule> schedule = schedule_at(level);
      if (!schedule) break;
      if (size(*schedule) <= budget) return {std::move(*schedule)};
    }
    std::vector<Proposal> lowest = keep_all()->propose(graph, budget);
    for (const Bytes fifths : {5, 6, 8, 11, 15, 20, 30, 45, 70}) {
      const Bytes level = eviction.lowest_level() * fifths / 5;
      if (fifths > 5 && level > budget - budget / 50) break;
      if (auto schedule = schedule_at(level)) lowest.emplace_back(std::move(*schedule));
    }
    return lowest;
  }
};

}  // namespace

PlannerPtr quick() { return std::make_shared<Quick>(); }

}  // namespace palimpsest
