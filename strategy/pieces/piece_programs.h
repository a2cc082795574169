#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "strategy/pieces/piece.h"

namespace palimpsest {

/// Programs of pieces: pieces that do the same, random numbers aside, share one. For one thread at
/// a time.
class PiecePrograms {
 public:
  /// Throws `BudgetError`.
  std::shared_ptr<const StepProgram> find_or_plan(const Piece& piece, const RunOptions& options,
                                                  int threads);
  /// Plans made so far.
  std::uint64_t made() const { return made_; }

 private:
  struct Entry {
    std::vector<std::uint64_t> signature;
    StepProgram::Wanted wanted;
    Bytes budget;
    std::string planner;
    int threads;
    std::shared_ptr<const StepProgram> program;
  };

  std::list<Entry> entries_;  // most recently used first
  std::vector<std::uint64_t> signature_;
  std::uint64_t made_ = 0;
};

}  // namespace palimpsest
