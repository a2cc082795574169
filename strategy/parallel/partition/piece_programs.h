#pragma once

#include <memory>

#include "strategy/base/cache_limit.h"
#include "strategy/compile/buffer_programs.h"
#include "strategy/parallel/partition/piece.h"

namespace palimpsest {

/// How pieces are planned.
struct PieceOptions {
  RunOptions run;           ///< the planner is for backward pieces, unless it is for all
  int threads;              ///< of a piece
  bool has_fraction;        ///< the planner takes a fraction of the memory, or the least there is
  bool all_pieces = false;  ///< the planner is for forward pieces too
};

/// Programs of pieces. Pieces that compute the same, except for random numbers, share one. Keeps
/// 1024 at most, and `most_cached` bytes. For one thread at a time.
class PiecePrograms {
 public:
  /// The scope in which a program's pieces are planned.
  class Session {
   public:
    explicit Session(PiecePrograms& programs) : programs_(programs.programs_) {
      programs_.begin_phase();
    }
    ~Session() { programs_.end_phase(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

   private:
    BufferPrograms& programs_;
  };

  /// Approximate bytes that are kept.
  Bytes bytes() const { return programs_.bytes(); }
  /// A program that runs in a workspace of `budget` bytes. It recomputes nothing if the piece is to
  /// `keep` everything.
  OrRefusal<BufferProgramPtr> plan(const Piece& piece, const PieceOptions& options, Bytes budget,
                                   bool keep = false);
  /// The smallest workspace of a piece.
  Bytes least(const Piece& piece, const PieceOptions& options);

 private:
  OrRefusal<BufferProgramPtr> find_or_compile(const Piece& piece, const RunOptions& options);

  BufferPrograms programs_{BufferPrograms::Match::attributes, 1024, most_cached};
};

}  // namespace palimpsest
