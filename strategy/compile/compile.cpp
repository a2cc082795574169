#include "strategy/compile/compile.h"

#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "checkpoint/planning_stop.h"
#include "strategy/compile/cache_budget.h"
#include "strategy/compile/form_choice.h"
#include "strategy/compile/plan_pass.h"
#include "strategy/compile/tape_plans.h"
#include "strategy/compile/verify_passes.h"
#include "strategy/compile/verify_plan.h"
#include "strategy/explain/explanation.h"

namespace palimpsest {
namespace {

/// Decided once in a process.
bool dumps() {
  static const bool asked = is_set("PALIMPSEST_DUMP");
  return asked;
}

/// The state that the passes share. A pass that fails returns a refusal.
class Passes {
 public:
  Passes(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
         const CompileContext& context, CompileLog* log)
      : tape_(tape), spec_(spec), context_(context), log_(log), options_(options) {}

  std::optional<BudgetError> reserve_loop_state_budgets() {
    if (context_.loops == nullptr) return {};
    auto refusal = context_.loops->reserve(tape_, spec_, options_);
    if (log_ != nullptr) log_->loop_state_budgets(context_.loops->summary());
    if (refusal) return refusal;
    loops_keep_all_ = context_.loops->keep_all();
    options_.planner = planner_for(options_, loops_keep_all_);
    return {};
  }

  void eliminate_common_subexpressions() {
    program_ = context_.program != nullptr ? context_.cache.use(context_.program)
                                           : context_.cache.find_or_add(tape_, spec_);
    if (log_ != nullptr && may_simplify(options_))
      log_->common_subexpressions(tape_, program_->forms.simplification());
  }

  void fit_cache_budget() {
    planned_budget_ = options_.memory_budget;
    if (!context_.fit_caches || !has_caches(options_.machine)) return;
    auto chosen = program_->cache_budgets.find(asked());
    if (chosen == program_->cache_budgets.end()) {
      const Bytes budget = cache_budget(tape_, spec_, program_->forms, options_);
      chosen = program_->cache_budgets.emplace(asked(), budget).first;
    }
    planned_budget_ = chosen->second;
    if (log_ != nullptr) log_->cache_budget(options_, planned_budget_);
  }

  std::optional<BudgetError> lower_and_plan() {
    RunOptions within = options_;
    within.memory_budget = planned_budget_;
    OrRefusal<PlannedVersion> found =
        plan_program(*program_, tape_, spec_, within, context_.fast_first_plan);
    if (!found && planned_budget_ != options_.memory_budget) {
      // A budget that was chosen for caches is no reason to refuse a run.
      within.memory_budget = planned_budget_ = options_.memory_budget;
      program_->cache_budgets.at(asked()) = planned_budget_;
      found = plan_program(*program_, tape_, spec_, within, context_.fast_first_plan);
    }
    if (!found) return found.refusal();
    found_.emplace(std::move(*found));
    note_keep_all();
    const Lowered& lowered = *found_->lowered;
    const bool is_new = found_->version->compiled == nullptr;
    if (is_new && verifies_passes()) verify(lowered.graph(), *found_->version->plan);
    if (log_ != nullptr) {
      log_->lowered(tape_, lowered, found_->form);
      log_->planned(tape_, lowered, *found_->version->plan);
    }
    return {};
  }

  /// Compares the plan with a run without a budget. Loops that hold fewer states than there would
  /// be in it do not show in the graph.
  void note_keep_all() {
    PlanVersion& version = *found_->version;
    Plan plan = *version.plan;
    plan.keep_all_cost = found_->keep_all_cost;
    if (loops_keep_all_) {
      plan.keep_all_cost = loops_keep_all_->seconds;
      plan.keep_all_peak = loops_keep_all_->peak;
    }
    if (context_.loops != nullptr) {
      plan.loop_steps = plan.recomputed_loop_steps = 0;
      for (const Explanation::LoopSteps& loop : context_.loops->steps()) {
        plan.loop_steps += loop.run;
        plan.recomputed_loop_steps += loop.repeated;
      }
    }
    const auto facts = [](const Plan& of) {
      return std::tuple(of.keep_all_cost, of.keep_all_peak, of.loop_steps,
                        of.recomputed_loop_steps);
    };
    if (facts(plan) == facts(*version.plan)) return;
    version.plan = std::make_shared<const Plan>(std::move(plan));
  }

  /// Returns true if the run needs a budget because less memory is free than it would take.
  bool fit_free_memory() {
    if (context_.free_memory == nullptr || !takes_free_memory(options_)) return false;
    const std::optional<Bytes> budget = budget_of_free_memory(
        found_->version->plan->predicted_peak(), context_.kept, *context_.free_memory);
    // The budget of the previous run stays while the free memory is enough and less than twice as
    // much. Its plan can then serve again.
    std::optional<Bytes>& before = program_->free_budget;
    const bool is_steady = budget && before && *before <= *budget && *budget / 2 < *before;
    if (!is_steady) before = budget;
    if (!before) return false;
    options_.memory_budget = *before;
    if (log_ != nullptr) log_->free_memory(options_.memory_budget);
    return true;
  }

  void emit_instructions() {
    PlanVersion& version = *found_->version;
    const std::shared_ptr<const Lowered>& lowered = found_->lowered;
    is_reused_ = version.compiled != nullptr && version.compiled->lowered == lowered;
    if (is_reused_ && version.compiled->plan == version.plan) return;
    std::shared_ptr<const Instructions> instructions;
    if (is_reused_) {
      instructions = version.compiled->instructions;
    } else {
      instructions = std::make_shared<const Instructions>(tape_, lowered, *version.plan);
      if (verifies_passes()) verify(*instructions, *version.plan);
    }
    if (log_ != nullptr) log_->emitted(tape_, *instructions);
    version.compiled = std::make_shared<const CompiledProgram>(
        CompiledProgram{lowered, found_->form, version.plan, std::move(instructions)});
    context_.cache.keep_within_limits();
  }

  /// Labels the plan for reports, with names and lines of this tape. Tapes of the same structure
  /// share a plan, but not these.
  void explain() {
    if (!context_.explains) return;
    PlanVersion& version = *found_->version;
    const bool has_plan =
        version.explanation != nullptr && &version.explanation->plan() == version.plan.get();
    const std::uint64_t labels =
        context_.labels_hash ? *context_.labels_hash : NodeLabels::hash_of(tape_);
    if (has_plan && labels == version.labels) return;
    const std::shared_ptr<const Lowered>& lowered = found_->lowered;
    std::vector<Explanation::Form> others;
    for (const GraphForm form : forms_to_compare(options_, program_->forms)) {
      const std::shared_ptr<const Lowered>& other = program_->forms.get(tape_, spec_, form);
      if (other != lowered) others.push_back({graph_in(other), NodeLabels::of(tape_, *other)});
    }
    version.explanation = std::make_shared<const Explanation>(
        graph_in(lowered), version.plan, version.planner, NodeLabels::of(tape_, *lowered),
        std::move(others), loops_of_explanation());
    version.labels = labels;
  }

  Compilation result() const {
    return {found_->version->compiled, found_->version, program_,
            options_.memory_budget,    found_->is_new,  is_reused_};
  }

 private:
  Explanation::Loops loops_of_explanation() const {
    if (context_.loops == nullptr) return {};
    Explanation::Loops loops{.steps = context_.loops->steps()};
    if (loops.steps.empty()) return {};
    if (auto budgets = context_.loops->for_copy_of(tape_)) {
      loops.plans = std::make_shared<const TapePlans>(tape_, spec_, options_, std::move(budgets));
    }
    return loops;
  }

  CachedProgram::Asked asked() const {
    return {planner_of(options_)->key(), may_fuse(options_), may_simplify(options_),
            options_.memory_budget};
  }

  Tape& tape_;
  const ProgramSpec& spec_;
  const CompileContext& context_;
  CompileLog* const log_;
  RunOptions options_;  // the budget may get smaller
  CachedProgramPtr program_;
  std::optional<KeepAll> loops_keep_all_;
  Bytes planned_budget_ = unlimited;
  std::optional<PlannedVersion> found_;
  bool is_reused_ = false;
};

OrRefusal<Compilation> run(Passes passes);

/// A dump of the passes until one fails, for the report of a defect.
std::string dump_until_failure(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                               const CompileContext& context) {
  CompileLog log(DumpLevel::all);
  log.begin(tape, spec, options);
  try {
    run(Passes(tape, spec, options, context, &log));
  } catch (...) {  // the error that is reported is the first one
  }
  std::ostringstream text;
  log.write(text);
  return text.str();
}

/// The main path from a recorded tape to instructions.
OrRefusal<Compilation> run(Passes passes) {
  do {
    PlanningStop::check();
    if (auto refusal = passes.reserve_loop_state_budgets()) return *std::move(refusal);
    PlanningStop::check();
    passes.eliminate_common_subexpressions();
    passes.fit_cache_budget();
    if (auto refusal = passes.lower_and_plan()) return *std::move(refusal);
  } while (passes.fit_free_memory());
  passes.emit_instructions();
  passes.explain();
  return passes.result();
}

}  // namespace

Plan plan_of(const Compilation& compiled, const Tape& tape) {
  Plan plan = *compiled.program->plan;
  plan.budget = compiled.budget;
  plan.runs = compiled.program->lowered->runs(plan.schedule, tape.node_count());
  return plan;
}

OrRefusal<Compilation> compile(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                               const CompileContext& context) {
  check(options);
  const PlanningStop stop(options.stop);
  const std::unique_ptr<CompileLog> own =
      context.log == nullptr && dumps() ? CompileLog::of_environment() : nullptr;
  CompileLog* const log = own != nullptr ? own.get() : context.log;
  if (log != nullptr) log->begin(tape, spec, options);
  try {
    OrRefusal<Compilation> compiled = run(Passes(tape, spec, options, context, log));
    if (log != nullptr && !compiled) log->refused(compiled.refusal());
    const bool is_new = !compiled || !compiled->is_reused;
    if (own != nullptr && is_new) own->write_where_environment_says();
    return compiled;
  } catch (const InternalError& error) {
    throw InternalError(error, dump_until_failure(tape, spec, options, context));
  }
}

}  // namespace palimpsest
