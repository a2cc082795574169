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
  std::string planner;  ///< who made it; empty means the one that was asked

  Proposal(Schedule made, std::string by = {})  // NOLINT(google-explicit-constructor)
      : schedule(std::move(made)), planner(std::move(by)) {}
  bool operator==(const Proposal&) const = default;
};

/// What a search for the smallest budget found.
struct Lowest {
  Bytes size = 0;                   ///< of the smallest layout
  std::vector<Proposal> proposals;  ///< that one, and others that may fit a larger budget
};

/// A way of deciding what to keep and what to recompute. A value: immutable, shareable, usable from
/// several threads. Write your own by deriving from it; `make_plan` does the checking.
class Planner {
 public:
  virtual ~Planner() = default;
  virtual std::string name() const = 0;
  /// Tells planners apart whose settings differ: plans are kept for use again by it.
  virtual std::string key() const { return name(); }
  /// Schedules worth considering for `graph`, in any order, at least one; `make_plan` simulates all
  /// of them and takes the cheapest that fits. Schedules that do not depend on `budget` make the
  /// choice monotone in it. Throws `ArgumentError` for settings that make no sense for the graph.
  virtual std::vector<Proposal> propose(const Graph& graph, Bytes budget) const = 0;
  /// True for a planner that proposes the same whatever the budget is: it is then asked once for
  /// several budgets.
  virtual bool ignores_budget() const { return false; }
  /// Bytes the plan may take: the budget, unless the planner sets a limit of its own from what
  /// keeping everything takes.
  virtual Bytes limit(Bytes keep_all_peak, Bytes budget) const {
    static_cast<void>(keep_all_peak);
    return budget;
  }
  /// Tells the user which setting allows `bytes` where `limit` does not, whatever the budget is.
  virtual std::string how_to_allow(Bytes bytes, Bytes keep_all_peak) const {
    static_cast<void>(bytes), static_cast<void>(keep_all_peak);
    return "change the planner's settings";
  }
  /// True for a planner whose settings name nodes by their place on the tape. An engine then plans
  /// the nodes as they were recorded, none of them in groups.
  virtual bool names_nodes() const { return false; }
  /// The one form that the planner has schedules for; none for a planner of any graph. An engine
  /// then plans the program in that form.
  virtual std::optional<GraphForm> form() const {
    return names_nodes() ? std::optional(GraphForm{}) : std::nullopt;
  }
  /// True for a planner that looks for the cheapest plan: when keep-all fits it is taken, and
  /// nothing is proposed.
  virtual bool accepts_keep_all() const { return false; }
  /// Looks further for what takes little memory, asked when nothing that was proposed for `budget`
  /// fits; nothing from a planner that has nothing beyond its proposals. The size does not depend
  /// on `budget`, and where `budget` is no smaller than the size one of the proposals fits.
  virtual std::optional<Lowest> lowest(const Graph& graph, Bytes budget) const {
    static_cast<void>(graph), static_cast<void>(budget);
    return {};
  }
  /// A planner that takes far less time, for a graph whose plan may not serve long; null when there
  /// is none. It may miss plans that this one finds. An engine asks for it where this one, at
  /// 0.12 ms a node, would take longer than a tenth of a run.
  virtual std::shared_ptr<const Planner> hurried() const { return nullptr; }
  /// A planner that goes on from `found` for so many seconds, in round `round`; null when more time
  /// finds nothing more. An engine asks for it while it runs a plan again and again.
  virtual std::shared_ptr<const Planner> continuing(Schedule found, double seconds,
                                                    std::uint64_t round) const {
    static_cast<void>(found), static_cast<void>(seconds), static_cast<void>(round);
    return nullptr;
  }
};

using PlannerPtr = std::shared_ptr<const Planner>;

}  // namespace palimpsest
