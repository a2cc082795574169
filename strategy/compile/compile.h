#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/or_refusal.h"
#include "strategy/base/free_memory.h"
#include "strategy/compile/compile_log.h"
#include "strategy/compile/compiled_program.h"
#include "strategy/compile/loop_state_budgets.h"
#include "strategy/compile/program_cache.h"

namespace palimpsest {

/// The context of `compile`: caches, and options that are not part of its input.
struct CompileContext {
  ProgramCache& cache;
  LoopStateBudgets* loops;  ///< null for a tape without loops
  /// The program, if the tape was compiled before. Null: the cache finds it.
  CachedProgramPtr program = nullptr;
  /// Takes a fast first plan if planning would take longer than a tenth of a run.
  bool fast_first_plan = false;
  /// Chooses a smaller budget if that makes runs faster by keeping values in the machine's caches.
  bool fit_caches = true;
  /// Returns the free memory, which limits runs without a budget. Null: nothing limits them.
  const FreeMemory* free_memory = nullptr;
  Bytes kept = 0;  ///< bytes of earlier runs that the next run can reuse
  /// Keeps what reports explain: names and source lines of the nodes.
  bool explains = false;
  /// The hash of these, if it is known. It takes a pass over all nodes.
  std::optional<std::uint64_t> labels_hash = {};
  /// Receives what each pass did. Null: the environment variable `PALIMPSEST_DUMP` decides.
  CompileLog* log = nullptr;
};

/// A compiled program, and the facts about its compilation that a run needs.
struct Compilation {
  std::shared_ptr<const CompiledProgram> program;
  PlanVersionPtr version;    ///< the plan's version, where runs note how long it has served
  CachedProgramPtr cached;   ///< its program in the cache
  Bytes budget = unlimited;  ///< the budget that it was compiled for
  bool is_new = false;       ///< no plan for this planner and budget was known before
  bool is_reused = false;    ///< the cache had the instructions
};

/// The plan of a compilation as its user sees it: with the budget that it was compiled for, and how
/// often it runs the nodes of the tape.
Plan plan_of(const Compilation& compiled, const Tape& tape);

/// Compiles the targets of `spec` within the budget of the options. This is the main path from a
/// recorded tape to instructions. If no plan fits, returns a refusal that names the smallest
/// feasible budget. Throws `ArgumentError` for invalid options.
///
/// Builds with assertions, and processes with `PALIMPSEST_VERIFY=1`, check the result of every pass
/// against its specification (strategy/compile/fusion/verify_lowered.h and verify_plan.h).
OrRefusal<Compilation> compile(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                               const CompileContext& context);

}  // namespace palimpsest
