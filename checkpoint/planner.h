#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/schedule.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A schedule that a planner offers.
struct Proposal {
  Schedule schedule;
  std::string planner;  ///< the planner that made it; empty means the one that was asked

  Proposal(Schedule made, std::string by = {})  // NOLINT(google-explicit-constructor)
      : schedule(std::move(made)), planner(std::move(by)) {}
  bool operator==(const Proposal&) const = default;
};

/// A strategy that decides what to keep and what to recompute. Planners are immutable, shareable,
/// and usable from several threads. Derive from this class to write your own: `name` and `propose`
/// are enough. `make_plan` does the checking.
class Planner {
 public:
  virtual ~Planner() = default;
  /// A short name for plans, reports and messages.
  virtual std::string name() const = 0;
  /// Distinguishes planners with different settings. Cached plans are found by it.
  virtual std::string key() const { return name(); }
  /// Schedules worth considering for `graph`, in any order, at least one. `make_plan` simulates all
  /// of them and takes the cheapest that fits. When the schedules do not depend on `budget`, the
  /// choice is monotone in it. Throws `ArgumentError` for settings that make no sense for the
  /// graph.
  virtual std::vector<Proposal> propose(const Graph& graph, Bytes budget) const = 0;
  /// True for a planner whose settings name nodes by their place on the tape. The tape is then
  /// planned as it was recorded, neither fused nor simplified.
  virtual bool names_nodes() const { return false; }
};

using PlannerPtr = std::shared_ptr<const Planner>;

}  // namespace palimpsest
