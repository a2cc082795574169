#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/or_refusal.h"
#include "strategy/compile/kept_plannings.h"
#include "strategy/compile/lowered_forms.h"
#include "strategy/compile/plan_improvement.h"

namespace palimpsest {

struct CompiledProgram;
class Explanation;

/// A plan in use for one planner and budget.
struct PlanVersion {
  std::uint64_t hash;  ///< of the graph's structure
  std::string key;     ///< of the planner
  PlannerPtr planner;
  Bytes budget;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Plan> plan;
  /// Made when the plan runs for the first time.
  std::shared_ptr<const CompiledProgram> compiled = {};
  std::shared_ptr<const Explanation> explanation = {};  ///< for reports
  std::uint64_t labels = 0;  ///< hash of the names and lines in the explanation
  bool reused = false;
  PlanImprovement improvement = {};

  /// Takes `other` if it fits and costs less or, with `if_equal`, the same. Returns the saved
  /// seconds.
  double adopt(Plan other, bool if_equal = false);
  /// Most bytes that a plan may take.
  Bytes limit() const;
};
using PlanVersionPtr = std::shared_ptr<PlanVersion>;

/// The plans of a program, by graph, planner and budget. A plan that was made for one budget is a
/// candidate for all others. Plans improve while they serve (see `PlanImprovement`). Keeps at most
/// 16 plans, `most_cached` bytes unless the last four take more, and as many refusals.
class PlanVersions {
 public:
  /// `plannings` keeps a planner's proposals for other budgets. `pace` is of the runs of several
  /// programs. Both outlive this. With `compete`, a plan for one budget is a candidate for others.
  PlanVersions(KeptPlannings& plannings, Pace& pace, bool compete = true)
      : plannings_(plannings), pace_(pace), compete_(compete) {}

  struct Request {
    const std::shared_ptr<const Graph>& graph;
    const PlannerPtr& planner;
    Bytes budget;
    Bytes named = unlimited;  ///< see `Planning::plan`
  };

  /// Finds the plan that was made before, improved if it has served long enough. Null when there is
  /// none.
  PlanVersionPtr find(const Request& request);
  /// True if planning takes longer than a tenth of a run of the graph.
  bool needs_fast_first_plan(const Graph& graph, const Planner& planner) const {
    return PlanImprovement::needs_fast_first_plan(graph, planner, pace_);
  }
  /// Makes a plan by the planner's fast version. Null if the whole planner takes little time, if no
  /// fast plan fits, or if the fast plan would recompute for longer than planning takes.
  PlanVersionPtr plan_fast(const Request& request);
  /// Makes a plan by the planner itself. A budget that was refused before is refused at once,
  /// unless a plan made since fits, or the refusal should name a smaller budget than it did.
  OrRefusal<PlanVersionPtr> plan(const Request& request);
  /// Replaces a fast plan by the whole planner's at once.
  void plan_in_full(PlanVersion& version) { version.improvement.plan_in_full(version, time_); }
  /// Notes that a plan has served for `seconds` more.
  void served(PlanVersion& version, double seconds);

  /// Approximate bytes kept.
  Bytes bytes() const;
  /// Likewise, without graphs of `forms`.
  Bytes bytes_beside(const LoweredForms& forms) const;
  /// Number of plans made.
  std::uint64_t made() const { return made_; }

 private:
  struct Refusal {
    std::shared_ptr<const Graph> graph;
    std::string key;  ///< of the planner, or of its fast version
    Bytes budget;
    std::optional<BudgetError> error;  ///< empty for a fast version
    Bytes named = unlimited;           ///< of the request
  };
  struct Match {
    std::list<PlanVersionPtr>::iterator same;
    std::vector<const PlanVersion*> others;  ///< for other budgets
  };

  Match match(const Request& request);
  const PlanVersionPtr& insert(const Request& request, Plan plan);
  /// Null if a plan found since then fits.
  const Refusal* refusal(const Request& request, const std::string& key,
                         std::span<const PlanVersion* const> others) const;
  void refuse(Refusal refusal);
  static bool is_of(const Refusal& refusal, const Request& request, const std::string& key);

  template <class IsCounted>
  Bytes bytes_without(IsCounted is_counted) const;

  KeptPlannings& plannings_;
  Pace& pace_;
  PlanningTime time_;
  bool compete_;
  std::list<PlanVersionPtr> versions_;  // most recently used first
  std::list<Refusal> refusals_;
  std::uint64_t made_ = 0;
};

}  // namespace palimpsest
