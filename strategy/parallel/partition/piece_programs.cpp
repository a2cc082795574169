#include "strategy/parallel/partition/piece_programs.h"

#include <algorithm>

#include "strategy/compile/forms.h"
#include "strategy/compile/fusion/signature.h"
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

/// False where nodes do what depends on more than what is recorded, as operations of users.
bool may_come_again(const Tape& tape) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.attributes(node).may_come_again()) return false;
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

void PiecePrograms::begin_planning() {
  // Enough for gradients and values, in turn, and for micro-batches.
  constexpr std::uint64_t longest_unused = 8;
  ++planned_;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    const bool is_unused = entry->last_use + longest_unused < planned_;
    const bool is_old_refusal = entry->refusal && entry->last_use + 1 < planned_;
    if ((!entry->comes_again && is_unused) || is_old_refusal) erase(entry);
    entry = next;
  }
}

void PiecePrograms::erase(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

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
  // How loops run is planned for each tape by itself, and changes what the tape is signed as.
  const bool loops = has_loops(*piece.tape);
  signature_.clear();
  if (!loops) sign(*piece.tape, threads, signature_);
  const std::string planner = planner_of(options)->key();
  const auto same = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.budget == options.memory_budget && entry.threads == threads &&
           entry.planner == planner && entry.wanted == piece.wanted &&
           (loops
                ? entry.tape == piece.tape
                : entry.signature == signature_ && have_equal_attributes(*entry.tape, *piece.tape));
  });
  if (same != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, same);
  } else {
    Entry entry = plan_anew(piece, options, threads, planner);
    if (loops && entry.program != nullptr) return entry.program;
    keep(std::move(entry));
  }
  entries_.front().last_use = planned_;
  if (entries_.front().refusal) throw *entries_.front().refusal;
  return entries_.front().program;
}

PiecePrograms::Entry PiecePrograms::plan_anew(const Piece& piece, const RunOptions& options,
                                              int threads, std::string planner) {
  Entry entry{signature_,
              piece.wanted,
              options.memory_budget,
              std::move(planner),
              threads,
              piece.tape,
              nullptr,
              {},
              0,
              false};
  entry.bytes = static_cast<Bytes>(signature_.size() * sizeof(std::uint64_t));
  try {
    if (has_loops(*piece.tape)) {
      const LoweredStore::Request request{
          piece.wanted.results, piece.wanted.backward_begins, {}, threads};
      LoopRoom().give(*piece.tape, request, options);
    }
    entry.program = std::make_shared<const StepProgram>(piece.tape, piece.wanted, options, threads,
                                                        &plannings_);
    entry.bytes += entry.program->bytes();
    ++made_;
  } catch (const BudgetError& error) {
    entry.refusal = error;
    entry.bytes += piece.tape->metadata_bytes();
  }
  entry.comes_again = may_come_again(*piece.tape);
  return entry;
}

void PiecePrograms::keep(Entry entry) {
  constexpr std::size_t most = 1024;
  constexpr Bytes most_bytes = 16_MiB;
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  const auto is_too_much = [&] {
    return entries_.size() > most ||
           (bytes_ > most_bytes && entries_.back().last_use < planned_ && entries_.size() > 1);
  };
  while (is_too_much()) erase(std::prev(entries_.end()));
}

}  // namespace palimpsest
