#pragma once

#include <memory>

#include "strategy/base/cache_limit.h"
#include "strategy/compile/buffer_programs.h"
#include "strategy/parallel/partition/piece.h"

namespace palimpsest {

/// How pieces are planned.
struct PieceOptions {
  RunOptions run;           ///< the planner applies to backward pieces only, unless `all_pieces`
  int threads;              ///< threads per piece
  bool has_fraction;        ///< the planner uses a fraction of the memory, or the least possible
  bool all_pieces = false;  ///< the planner applies to forward pieces too
};

/// The compiled programs of pieces. Pieces that compute the same, except for random numbers, share
/// one. Keeps at most 1024 programs and `most_cached` bytes. Use it from one thread at a time.
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

  /// Approximate bytes kept.
  Bytes bytes() const { return programs_.bytes(); }
  /// A program that runs in a workspace of `budget` bytes. With `keep`, it keeps everything and
  /// recomputes nothing.
  OrRefusal<BufferProgramPtr> plan(const Piece& piece, const PieceOptions& options, Bytes budget,
                                   bool keep = false);
  /// Bytes of the smallest workspace of a piece.
  Bytes least(const Piece& piece, const PieceOptions& options);

 private:
  OrRefusal<BufferProgramPtr> find_or_compile(const Piece& piece, const RunOptions& options);

  BufferPrograms programs_{BufferPrograms::Match::attributes, 1024, most_cached};
};

}  // namespace palimpsest
