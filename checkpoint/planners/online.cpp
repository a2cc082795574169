#include <limits>

#include "checkpoint/engine_planner.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/online_run.h"

namespace palimpsest {

namespace {

class Online final : public EnginePlanner {
 public:
  std::string name() const override { return "online eviction"; }
  bool accepts_keep_all() const override { return true; }

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    std::vector<Proposal> schedules;
    const std::size_t most_steps = 16 * graph.needed_nodes().size() + 64;
    const auto attempt = [&](Bytes level) {
      OnlineRun run = run_online(graph, level, most_steps);
      const bool fits = run.schedule.has_value();
      if (fits) schedules.emplace_back(std::move(*run.schedule));
      return fits;
    };
    const OnlineRun unbounded = run_online(graph, std::numeric_limits<Bytes>::max(), most_steps);
    const Bytes highest = unbounded.peak;
    if (budget >= highest) return {*unbounded.schedule};
    // The layout may take slightly more than the bytes that are counted here.
    for (const Bytes part : {Bytes{0}, Bytes{64}, Bytes{16}}) {
      attempt(part == 0 ? budget : budget - budget / part);
    }
    if (!schedules.empty()) return schedules;
    // The planner is not monotone: less memory may suffice.
    for (const Bytes part : {Bytes{8}, Bytes{5}, Bytes{3}}) {
      if (attempt(budget - budget / part)) return schedules;
    }
    // Nothing fits: look for the smallest budget with a plan.
    Bytes low = budget;
    Bytes high = highest;
    schedules.push_back(*unbounded.schedule);
    for (int halvings = 0; halvings < 10 && high - low > high / 100; ++halvings) {
      const Bytes middle = low + (high - low) / 2;
      (attempt(middle) ? high : low) = middle;
    }
    return schedules;
  }
};

}  // namespace

PlannerPtr online() { return std::make_shared<Online>(); }

}  // namespace palimpsest
