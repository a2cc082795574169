#include "strategy/parallel/partition/piece_programs.h"

#include "strategy/loops/loop_budgets.h"

namespace palimpsest {

OrRefusal<BufferProgramPtr> PiecePrograms::plan(const Piece& piece, const PieceOptions& options,
                                                Bytes budget, bool keep) {
  RunOptions run = options.run;
  run.threads = options.threads;
  run.memory_budget = budget;
  if (keep || !(piece.is_backward || options.all_pieces)) run.planner = nullptr;
  OrRefusal<BufferProgramPtr> made = find_or_compile(piece, run);
  if (made) return made;
  // Loops divide a budget in other ways, which may take more than they take without one.
  run.memory_budget = unlimited;
  OrRefusal<BufferProgramPtr> free = find_or_compile(piece, run);
  if (free && (*free)->workspace() <= budget) return free;
  if (!options.has_fraction || run.planner == nullptr) return made;
  const Bytes smallest = made.refusal().smallest_feasible();
  if (smallest > budget) return made;
  // The planner's own limit is too small, so the default planner plans within the least memory.
  run.planner = nullptr;
  run.memory_budget = smallest;
  return find_or_compile(piece, run);
}

Bytes PiecePrograms::least(const Piece& piece, const PieceOptions& options) {
  const OrRefusal<BufferProgramPtr> made = plan(piece, options, 0);
  return made ? (*made)->workspace() : made.refusal().smallest_feasible();
}

OrRefusal<BufferProgramPtr> PiecePrograms::find_or_compile(const Piece& piece,
                                                           const RunOptions& options) {
  LoopBudgets loops;
  return programs_.find_or_compile(piece.tape, piece.wanted, options, loops);
}

}  // namespace palimpsest
