#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "strategy/pieces/piece.h"

namespace palimpsest {

/// How pieces are planned.
struct PieceOptions {
  RunOptions run;           ///< the planner is for backward pieces, unless it is for all
  int threads;              ///< of a piece
  bool has_fraction;        ///< the planner asks for a fraction of the memory, or what is least
  bool all_pieces = false;  ///< the planner is for forward pieces, too
};

/// Programs of pieces: pieces that do the same, random numbers aside, share one. For one thread at
/// a time.
class PiecePrograms {
 public:
  /// A program in a workspace of `budget` bytes; one that computes nothing again where the piece is
  /// to `keep`. Throws `BudgetError`.
  std::shared_ptr<const StepProgram> plan(const Piece& piece, const PieceOptions& options,
                                          Bytes budget, bool keep = false);
  /// The smallest workspace of a piece.
  Bytes least(const Piece& piece, const PieceOptions& options);
  /// Plans made so far.
  std::uint64_t made() const { return made_; }

 private:
  std::shared_ptr<const StepProgram> find_or_plan(const Piece& piece, const RunOptions& options,
                                                  int threads);

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
