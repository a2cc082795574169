#pragma once

#include "checkpoint/graph.h"
#include "checkpoint/planner.h"

namespace palimpsest {

/// Result of a search for the smallest budget.
struct Lowest {
  Bytes size = 0;                   ///< bytes of the smallest layout
  std::vector<Proposal> proposals;  ///< that schedule, and others that may fit a larger budget
};

/// What the library's own planners tell an engine in addition to `Planner`. The defaults are those
/// of other planners.
class EnginePlanner : public Planner {
 public:
  /// True for a planner whose proposals do not depend on the budget. It is then asked once for
  /// several budgets.
  virtual bool ignores_budget() const { return false; }
  /// Bytes the plan may take: the budget, unless the planner sets its own limit from the bytes of
  /// keep-all.
  virtual Bytes limit(Bytes keep_all_peak, Bytes budget) const {
    static_cast<void>(keep_all_peak);
    return budget;
  }
  /// The planner with a limit of these bytes, for a program that takes them when its loops hold all
  /// their states. A graph does not show that, since its loops may hold fewer. `unlimited`: without
  /// a limit. Null for a planner that has none.
  virtual PlannerPtr with_keep_all(Bytes keep_all_peak) const {
    static_cast<void>(keep_all_peak);
    return nullptr;
  }
  /// Most states, including the first one, that a loop of `steps` steps holds at a time. All,
  /// unless the planner's settings say how much is recomputed whatever the budget is.
  virtual std::uint32_t states_of_loop(std::uint32_t steps) const { return steps; }
  /// Tells the user which setting allows `bytes`, when `limit` does not at any budget.
  virtual std::string how_to_allow(Bytes bytes, Bytes keep_all_peak) const {
    static_cast<void>(bytes), static_cast<void>(keep_all_peak);
    return "change the planner's settings";
  }
  /// The only form that the planner has schedules for; empty for a planner of any graph, and for
  /// one that names nodes. An engine then plans the program in that form.
  virtual std::optional<GraphForm> form() const { return {}; }
  /// True for a planner that looks for the cheapest plan. When keep-all fits, it is taken without
  /// asking for proposals.
  virtual bool accepts_keep_all() const { return false; }
  /// Searches further for plans of little memory. It is called when no proposal for `budget` fits.
  /// Empty from a planner that has nothing beyond its proposals. The size does not depend on
  /// `budget`, and when `budget` is at least that size, one of the proposals fits.
  virtual std::optional<Lowest> lowest(const Graph& graph, Bytes budget) const {
    static_cast<void>(graph), static_cast<void>(budget);
    return {};
  }
  /// A planner that takes far less time, for a graph whose plan may not serve long; null when there
  /// is none. It may miss plans that this one finds. An engine asks for it when this one would take
  /// longer than a tenth of a run.
  virtual PlannerPtr fast() const { return nullptr; }
  /// A planner that continues from `found` for so many seconds, in round `round`; null when more
  /// time finds nothing more. An engine asks for it while it runs a plan repeatedly.
  virtual PlannerPtr continuing(Schedule found, double seconds, std::uint64_t round) const {
    static_cast<void>(found), static_cast<void>(seconds), static_cast<void>(round);
    return nullptr;
  }
};

/// The part of a planner that is for engines; the defaults for a planner that has none.
const EnginePlanner& engine_part(const Planner& planner);
inline const EnginePlanner& engine_part(const PlannerPtr& planner) { return engine_part(*planner); }

/// The only form that the planner has schedules for (see `EnginePlanner::form`).
std::optional<GraphForm> form_of(const Planner& planner);

}  // namespace palimpsest
