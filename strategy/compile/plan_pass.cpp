#include "strategy/compile/plan_pass.h"

#include <algorithm>
#include <optional>

#include "checkpoint/lower_bound.h"
#include "strategy/explain/node_labels.h"

namespace palimpsest {
namespace {

class PlanPass {
 public:
  PlanPass(CachedProgram& program, const Tape& tape, const ProgramSpec& spec,
           const RunOptions& options)
      : program_(program), tape_(tape), spec_(spec), options_(options) {}

  OrRefusal<PlannedVersion> run(bool fast_first) {
    const std::uint64_t made = program_.versions.made();
    std::optional<PlannedVersion> soon;
    if (fast_first && !only_form(options_)) soon = find_soon();
    OrRefusal<PlannedVersion> found = soon ? OrRefusal<PlannedVersion>(*std::move(soon)) : whole();
    if (!found) return with_remedy(found.refusal());
    found->keep_all_cost = keep_all_cost(options_, program_.forms, one_pass_cost_);
    found->is_new = !is_known_ && program_.versions.made() > made;
    return found;
  }

 private:
  using Found = std::optional<PlannedVersion>;

  /// Adds to a refusal what takes most memory by itself, and what the user can do.
  BudgetError with_remedy(const BudgetError& refusal) {
    if (refusal.own_limit()) return refusal;
    const bool simplify = may_simplify(options_) && program_.forms.is_simplified();
    std::shared_ptr<const Lowered> lowered = lower({false, simplify});
    PeakBound bound = peak_bound(lowered->graph());
    if (may_fuse(options_)) {
      const std::shared_ptr<const Lowered>& fused = lower({true, simplify});
      const PeakBound of_fused = peak_bound(fused->graph());
      if (of_fused.bytes <= bound.bytes) {
        bound = of_fused;
        lowered = fused;
      }
    }
    const auto [bytes, node] = bound;
    const std::string alone =
        node == none ? "parameters, gradients and outputs take "
                     : NodeLabels::of(tape_, *lowered).describe(node) + " alone takes ";
    return BudgetError(std::string(refusal.what()) + "; " + alone + format_bytes(bytes) +
                           "; give a larger budget, or record smaller operations" +
                           (spec_.threads > 1 ? ", or use fewer threads" : ""),
                       refusal.budget(), refusal.smallest_feasible());
  }

  /// The plan of the whole planner, in its best form.
  OrRefusal<PlannedVersion> whole() {
    Bytes named = unlimited;  // by the refusals of other forms; 0 once a form fits
    const auto plan = [&](GraphForm form) -> OrRefusal<PlannedVersion> {
      const std::shared_ptr<const Lowered>& lowered = lower(form);
      const std::shared_ptr<const Graph> graph = graph_in(lowered);
      const PlanVersions::Request request{graph, planner_of(options_), options_.memory_budget,
                                          named};
      PlanVersionPtr version = known(request);
      if (version != nullptr) {
        program_.versions.plan_in_full(*version);  // forms are compared by equal planners
      } else {
        OrRefusal<PlanVersionPtr> made = program_.versions.plan(request);
        if (!made) {
          named = std::min(named, made.refusal().smallest_feasible());
          return made.refusal();
        }
        version = *made;
      }
      named = 0;
      return PlannedVersion{form, lowered, std::move(version)};
    };
    return plan_some_form(options_, program_.forms, plan, one_pass_cost_);
  }

  /// A known plan, or a fast one. Whether to make fast plans is decided once for all forms, since a
  /// fast plan does not compare with the whole planner's plan of another form.
  Found find_or_plan_fast(GraphForm form) {
    const std::shared_ptr<const Lowered>& lowered = lower(form);
    const std::shared_ptr<const Graph> graph = graph_in(lowered);
    const PlanVersions::Request request{graph, planner_of(options_), options_.memory_budget};
    PlanVersionPtr version = known(request);
    if (version == nullptr) {
      if (!needs_fast_plan_) {
        needs_fast_plan_ = program_.versions.needs_fast_first_plan(*graph, *request.planner);
      }
      if (*needs_fast_plan_) version = program_.versions.plan_fast(request);
    }
    if (version == nullptr) return {};
    return PlannedVersion{form, lowered, std::move(version)};
  }

  static bool is_fast(const Found& found) { return found && found->version->improvement.is_fast(); }

  /// The plan that serves until there is time for other forms.
  Found find_soon(bool simplify) {
    Found fused;
    if (may_fuse(options_)) fused = find_or_plan_fast({true, simplify});
    const auto unfused_cost = [&] { return one_pass_cost_({false, simplify}); };
    if (fused && suffices(*fused, options_, unfused_cost)) return fused;
    // Without a budget the fused form is enough, and the whole planner takes hardly any time.
    if (may_fuse(options_) && options_.memory_budget == unlimited) return {};
    Found unfused = find_or_plan_fast({false, simplify});
    if (unfused && fused) return cost(*fused) <= cost(*unfused) ? fused : unfused;
    if (is_fast(fused)) return fused;
    if (is_fast(unfused) || (unfused && !may_fuse(options_))) return unfused;
    return {};
  }

  Found find_soon() {
    const bool simplify = may_simplify(options_) && program_.forms.is_simplified();
    Found simplified = find_soon(simplify);
    if (!simplify || !program_.forms.holds_longer()) return simplified;
    if (simplified && cost(*simplified) <= recorded_one_pass_cost(options_, one_pass_cost_)) {
      return simplified;
    }
    Found recorded = find_soon(false);
    if (simplified && recorded) return cost(*simplified) <= cost(*recorded) ? simplified : recorded;
    if (is_fast(simplified)) return simplified;
    if (is_fast(recorded)) return recorded;
    return {};
  }

  PlanVersionPtr known(const PlanVersions::Request& request) {
    PlanVersionPtr version = program_.versions.find(request);
    is_known_ = is_known_ || version != nullptr;
    return version;
  }

  const std::shared_ptr<const Lowered>& lower(GraphForm form) {
    return program_.forms.get(tape_, spec_, form);
  }

  CachedProgram& program_;
  const Tape& tape_;
  const ProgramSpec& spec_;
  const RunOptions& options_;
  const OnePassCost one_pass_cost_ = [this](GraphForm form) {
    return lower(form)->one_pass_cost();
  };
  std::optional<bool> needs_fast_plan_;
  bool is_known_ = false;
};

}  // namespace

OrRefusal<PlannedVersion> plan_program(CachedProgram& program, const Tape& tape,
                                       const ProgramSpec& spec, const RunOptions& options,
                                       bool fast_first) {
  return PlanPass(program, tape, spec, options).run(fast_first);
}

}  // namespace palimpsest
