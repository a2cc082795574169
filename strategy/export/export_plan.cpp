#include "strategy/export/export_plan.h"

#include <algorithm>

#include "strategy/compile/compile.h"

namespace palimpsest {
namespace {

std::vector<ValueId> ids_of(std::span<const Var> values) {
  std::vector<ValueId> ids;
  for (const Var& value : values) ids.push_back(value.id());
  return ids;
}

[[noreturn]] void throw_refusal(Bytes budget, const ExportedC& fixed, Bytes arena) {
  const Bytes least = fixed.total_bytes() + arena;
  throw BudgetError(
      "[export_c] a budget of " + std::to_string(budget) +
          " bytes is too small; the smallest feasible one is " + std::to_string(least) +
          " bytes, with parameters of " + std::to_string(fixed.parameter_bytes) + ", results of " +
          std::to_string(fixed.result_bytes) + ", optimizer state of " +
          std::to_string(fixed.state_bytes) + " and an arena of " + std::to_string(arena),
      budget, least);
}

}  // namespace

ExportPlan::ExportPlan(const Program& program, const ProgramParts& parts,
                       const ExportOptions& options, bool updates, const ExportedC& fixed)
    : targets_(ids_of(parts.outputs)), tape_(program.tape(), targets_) {
  if (updates) {
    // A gradient may be a parameter, which the update of another one reads after it changed.
    for (std::size_t i = parts.differentiated; i < targets_.size(); ++i) {
      targets_[i] = tape_.record_copy(targets_[i]);
    }
  }
  std::vector<ValueId> targets = targets_;
  std::ranges::sort(targets);
  targets.erase(std::ranges::unique(targets).begin(), targets.end());
  const Bytes budget = options.memory_budget;
  RunOptions run;
  run.fuse = false;
  run.threads = 1;
  run.planner = options.planner;
  if (budget != unlimited) run.memory_budget = std::max<Bytes>(0, budget - fixed.total_bytes());
  ProgramSpec spec = spec_for(targets, parts.backward_begins, run);
  spec.results_in_buffers = !updates;
  ProgramCache cache;
  const CompileContext context{.cache = cache, .loops = nullptr, .fit_caches = false};
  const OrRefusal<Compilation> made = compile(tape_.tape(), spec, run, context);
  if (!made) throw_refusal(budget, fixed, made.refusal().smallest_feasible());
  compiled_ = made->program;
  const Bytes arena = instructions().arena_size();
  if (budget != unlimited && fixed.total_bytes() + arena > budget) {
    throw_refusal(budget, fixed, arena);
  }
}

Instructions::Place ExportPlan::place(std::size_t output) const {
  return std::ranges::find(instructions().results(), targets_[output], &Instructions::Held::value)
      ->place;
}

}  // namespace palimpsest
