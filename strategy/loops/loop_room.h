#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/run_scope.h"
#include "strategy/base/options.h"
#include "strategy/base/report.h"
#include "strategy/compile/fusion/lowered_store.h"
#include "strategy/loops/loop_division.h"

namespace palimpsest {

/// A loop that a run will differentiate, and what is known of it before.
struct LoopOfRun {
  Report::Loop planned;
  /// What notes of the run are about: for its address alone, it may be gone.
  const Loop* loop;
};

/// What is known after the run that made these notes.
std::vector<Report::Loop> reports_of(std::span<const LoopOfRun> loops,
                                     const RunScope::Notes& notes);

/// How much memory the loops of a tape hold states in, found for one program at a time.
class LoopRoom {
 public:
  /// Gives the loops whose backward part is run as much as the budget leaves beside everything
  /// else, or as their own options say, and the others none. Throws `BudgetError` when a loop's own
  /// budget is too small.
  void give(Tape& tape, const LoweredStore::Request& request, const RunOptions& options);
  /// Bytes of states that the loops would hold beside what they were given last, if they held all.
  Bytes withheld() const { return withheld_; }
  /// What was decided last.
  const std::vector<LoopOfRun>& loops() const { return loops_; }

 private:
  std::vector<std::uint64_t> signature_;  // of the last program, and what was asked of it
  std::vector<LoopDivision> divisions_;   // of its loops
  std::vector<LoopOfRun> loops_;
  Bytes withheld_ = 0;
};

/// While it lives, the loops of a tape have memory to hold states in. Throws as `LoopRoom::give`.
class LentRoom {
 public:
  LentRoom(LoopRoom& room, Tape& tape, const LoweredStore::Request& request,
           const RunOptions& options);
  ~LentRoom();
  LentRoom(const LentRoom&) = delete;
  LentRoom& operator=(const LentRoom&) = delete;

 private:
  Tape& tape_;
};

}  // namespace palimpsest
