#include "strategy/pieces/piece_programs.h"

#include <algorithm>

#include "strategy/forms.h"
#include "strategy/fusion/signature.h"
#include "strategy/loops/loop_room.h"

namespace palimpsest {
namespace {

/// True when tapes of one signature have the same attributes, but for those of random operations.
bool have_equal_attributes(const Tape& a, const Tape& b) {
  for (NodeId node = 0; node < a.node_count(); ++node) {
    if (!a.operation(node).random && !(a.attributes(node) == b.attributes(node))) return false;
  }
  return true;
}

/// True when a tape holds loops: how these run is planned for each tape by itself.
bool has_loops(const Tape& tape) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.operation(node).has_room) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const StepProgram> PiecePrograms::plan(const Piece& piece,
                                                       const PieceOptions& options, Bytes budget,
                                                       bool keep) {
  RunOptions run = options.run;
  run.memory_budget = budget;
  if (keep || !(piece.is_backward || options.all_pieces)) run.planner = nullptr;
  try {
    return find_or_plan(piece, run, options.threads);
  } catch (const BudgetError& error) {
    const bool asks = options.has_fraction && run.planner != nullptr;
    if (!asks || error.smallest_feasible() > budget) throw;
    run.planner = nullptr;
    run.memory_budget = error.smallest_feasible();
    return find_or_plan(piece, run, options.threads);
  }
}

Bytes PiecePrograms::least(const Piece& piece, const PieceOptions& options) {
  try {
    return plan(piece, options, 0)->workspace();
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
}

std::shared_ptr<const StepProgram> PiecePrograms::find_or_plan(const Piece& piece,
                                                               const RunOptions& options,
                                                               int threads) {
  if (has_loops(*piece.tape)) {
    const LoweredStore::Request request{
        piece.wanted.results, piece.wanted.backward_begins, {}, threads};
    LoopRoom().give(*piece.tape, request, options);
    ++made_;
    return std::make_shared<const StepProgram>(piece.tape, piece.wanted, options, threads);
  }
  constexpr std::size_t most = 1024;
  sign(*piece.tape, threads, signature_);
  const std::string planner = planner_of(options)->key();
  const auto same = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.budget == options.memory_budget && entry.threads == threads &&
           entry.planner == planner && entry.wanted == piece.wanted &&
           entry.signature == signature_ &&
           have_equal_attributes(entry.program->tape(), *piece.tape);
  });
  if (same != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, same);
  } else {
    entries_.push_front(
        {signature_, piece.wanted, options.memory_budget, planner, threads,
         std::make_shared<const StepProgram>(piece.tape, piece.wanted, options, threads)});
    ++made_;
    if (entries_.size() > most) entries_.pop_back();
  }
  return entries_.front().program;
}

}  // namespace palimpsest
