#include "strategy/compile/compile.h"

#include <optional>
#include <utility>

#include "strategy/compile/form_choice.h"
#include "strategy/compile/plan_pass.h"

namespace palimpsest {
namespace {

/// The state that passes hand on to each other.
class Passes {
 public:
  Passes(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
         const CompileContext& context)
      : tape_(tape), spec_(spec), context_(context), options_(options) {}

  std::optional<BudgetError> reserve_loop_state_budgets() {
    if (context_.loops == nullptr) return {};
    return context_.loops->reserve(tape_, spec_, options_);
  }

  void eliminate_common_subexpressions() {
    program_ =
        context_.program != nullptr ? context_.program : context_.cache.find_or_add(tape_, spec_);
  }

  void fit_cache_budget() {
    planned_budget_ = options_.memory_budget;
    if (!context_.fit_caches || !has_caches(options_.machine)) return;
    const std::pair asked(planner_of(options_)->key(), options_.memory_budget);
    auto chosen = program_->cache_budgets.find(asked);
    if (chosen == program_->cache_budgets.end()) {
      const Bytes budget = cache_budget(tape_, spec_, program_->forms, options_);
      chosen = program_->cache_budgets.emplace(asked, budget).first;
    }
    planned_budget_ = chosen->second;
  }

  std::optional<BudgetError> lower_and_plan() {
    RunOptions within = options_;
    within.memory_budget = planned_budget_;
    OrRefusal<PlannedVersion> found =
        plan_program(*program_, tape_, spec_, within, context_.fast_first_plan);
    if (!found) return found.refusal();
    found_.emplace(std::move(*found));
    return {};
  }

  /// Returns true if the run needs a budget because less memory is free than it would take.
  bool fit_free_memory() {
    if (context_.free_memory == nullptr || !takes_free_memory(options_)) return false;
    const std::optional<Bytes> budget = budget_of_free_memory(
        found_->version->plan->predicted_peak(), context_.kept, *context_.free_memory);
    // The budget of the run before stays while there is enough memory for it, and not much more, so
    // that its plan can serve again.
    std::optional<Bytes>& before = program_->free_budget;
    const bool is_steady = budget && before && *before <= *budget && *budget / 2 < *before;
    if (!is_steady) before = budget;
    if (!before) return false;
    options_.memory_budget = *before;
    return true;
  }

  void emit_instructions() {
    PlanVersion& version = *found_->version;
    const auto& [form, lowered, kept_version, keep_all_cost, is_new] = *found_;
    if (version.plan->keep_all_cost != keep_all_cost) {
      Plan plan = *version.plan;
      plan.keep_all_cost = keep_all_cost;
      version.plan = std::make_shared<const Plan>(std::move(plan));
      version.compiled = nullptr;
    }
    if (version.compiled != nullptr && version.compiled->lowered == lowered) return;
    version.compiled = std::make_shared<const CompiledProgram>(
        CompiledProgram{lowered, form, version.plan,
                        std::make_shared<const Instructions>(tape_, lowered, *version.plan)});
  }

  Compilation result() const {
    return {found_->version->compiled, found_->version, program_, options_.memory_budget,
            found_->is_new};
  }

 private:
  Tape& tape_;
  const ProgramSpec& spec_;
  const CompileContext& context_;
  RunOptions options_;  // the budget may get smaller
  CachedProgramPtr program_;
  Bytes planned_budget_ = unlimited;
  std::optional<PlannedVersion> found_;
};

}  // namespace

OrRefusal<Compilation> compile(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                               const CompileContext& context) {
  check(options);
  Passes passes(tape, spec, options, context);
  do {
    if (auto refusal = passes.reserve_loop_state_budgets()) return *std::move(refusal);
    passes.eliminate_common_subexpressions();
    passes.fit_cache_budget();
    if (auto refusal = passes.lower_and_plan()) return *std::move(refusal);
  } while (passes.fit_free_memory());
  passes.emit_instructions();
  return passes.result();
}

}  // namespace palimpsest
