#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strategy/compile/lowered_forms.h"
#include "strategy/compile/plan_versions.h"
#include "strategy/compile/step_cache.h"

namespace palimpsest {

/// A program that was compiled before: its lowered forms, and its plans for planners and budgets.
struct CachedProgram {
  std::vector<std::uint64_t> fingerprint;
  LoweredForms forms;
  PlanVersions versions;
  /// A planner, forms that may be planned, and a requested budget.
  struct Asked {
    std::string planner;
    bool fuse;
    bool simplify;
    Bytes budget;

    auto operator<=>(const Asked&) const = default;
  };
  /// Budgets that were chosen for the machine's caches; the requested one where no plan fits them.
  std::map<Asked, Bytes> cache_budgets = {};
  /// The budget chosen for lack of free memory, for runs without a budget of their own.
  std::optional<Bytes> free_budget = {};

  Bytes bytes() const;
};
using CachedProgramPtr = std::shared_ptr<CachedProgram>;

/// The cache of compiled programs. A program is found by the structural fingerprint of its tape and
/// its `ProgramSpec`. A training step can be found by its forward part alone. Keeps at most 16
/// programs, and at most `most_cached` bytes unless the last two take more. Use it from one thread
/// at a time.
class ProgramCache {
 public:
  /// With `plans_compete`, the plan for one budget is a candidate for others.
  explicit ProgramCache(bool plans_compete = true) : plans_compete_(plans_compete) {}
  ProgramCache(const ProgramCache&) = delete;
  ProgramCache& operator=(const ProgramCache&) = delete;

  /// Finds or adds the program that a tape holds.
  const CachedProgramPtr& find_or_add(const Tape& tape, const ProgramSpec& spec);
  /// Notes that a program of this cache is used. Takes it back if it was dropped.
  const CachedProgramPtr& use(const CachedProgramPtr& program);
  /// Drops programs until the limits hold. Call it after programs got new plans.
  void keep_within_limits();

  /// Steps that are run again without being differentiated.
  StepCache& steps() { return steps_; }

  /// Approximate bytes kept.
  Bytes bytes() const;

 private:
  bool plans_compete_;
  std::list<CachedProgramPtr> programs_;  // most recently used first
  KeptPlannings plannings_{4_MiB};
  Pace pace_;
  StepCache steps_;
  std::vector<std::uint64_t> fingerprint_;  // of the last program searched for
};

}  // namespace palimpsest
