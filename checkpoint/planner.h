#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/schedule.h"

namespace palimpsest {

/// A schedule that a planner offers.
struct Proposal {
  Schedule schedule;
  std::string planner;  ///< the planner that made it; empty means the one that was asked

  Proposal(Schedule made, std::string by = {})  // NOLINT(google-explicit-constructor)
      : schedule(std::move(made)), planner(std::move(by)) {}
  bool operator==(const Proposal&) const = default;
};

/// Result of a search for the smallest budget.
struct Lowest {
  Bytes size = 0;                   ///< bytes of the smallest layout
  std::vector<Proposal> proposals;  ///< that schedule, and others that may fit a larger budget
};

/// A strategy that decides what to keep and what to recompute. Planners are immutable, shareable,
/// and usable from several threads. Derive from this class to write your own; `make_plan` does the
/// checking.
class Planner {
 public:
  virtual ~Planner() = default;
  virtual std::string name() const = 0;
  /// Distinguishes planners with different settings. Cached plans are found by it.
  virtual std::string key() const { return name(); }
  /// Schedules worth considering for `graph`, in any order, at least one. `make_plan` simulates all
  /// of them and takes the cheapest that fits. When the schedules do not depend on `budget`, the
  /// choice is monotone in it. Throws `ArgumentError` for settings that make no sense for the
  /// graph.
  virtual std::vector<Proposal> propose(const Graph& graph, Bytes budget) const = 0;
  /// True for a planner whose proposals do not depend on the budget. It is then asked once for
  /// several budgets.
  virtual bool ignores_budget() const { return false; }
  /// Bytes the plan may take: the budget, unless the planner sets its own limit from the bytes of
  /// keep-all.
  virtual Bytes limit(Bytes keep_all_peak, Bytes budget) const {
    static_cast<void>(keep_all_peak);
    return budget;
  }
  /// Tells the user which setting allows `bytes`, when `limit` does not at any budget.
  virtual std::string how_to_allow(Bytes bytes, Bytes keep_all_peak) const {
    static_cast<void>(bytes), static_cast<void>(keep_all_peak);
    return "change the planner's settings";
  }
  /// True for a planner whose settings name nodes by their place on the tape. An engine then plans
  /// the nodes as they were recorded, none of them in groups.
  virtual bool names_nodes() const { return false; }
  /// The only form that the planner has schedules for; empty for a planner of any graph. An engine
  /// then plans the program in that form.
  virtual std::optional<GraphForm> form() const {
    return names_nodes() ? std::optional(GraphForm{}) : std::nullopt;
  }
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
  /// is none. It may miss plans that this one finds. An engine asks for it when this one, at 0.12
  /// ms per node, would take longer than a tenth of a run.
  virtual std::shared_ptr<const Planner> fast() const { return nullptr; }
  /// A planner that continues from `found` for so many seconds, in round `round`; null when more
  /// time finds nothing more. An engine asks for it while it runs a plan repeatedly.
  virtual std::shared_ptr<const Planner> continuing(Schedule found, double seconds,
                                                    std::uint64_t round) const {
    static_cast<void>(found), static_cast<void>(seconds), static_cast<void>(round);
    return nullptr;
  }
};

using PlannerPtr = std::shared_ptr<const Planner>;

}  // namespace palimpsest
