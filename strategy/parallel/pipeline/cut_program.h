#pragma once

#include <memory>
#include <vector>

#include "strategy/parallel/partition/piece.h"
#include "strategy/parallel/pipeline/pipeline_schedule.h"

namespace palimpsest {

/// What was recorded of a micro-batch, with its gradients or without, and the stages that it is cut
/// into: ranges of the forward part, each with the adjoints of its nodes. So a value's adjoint is
/// the sum that it is on one tape, whichever stages add to it.
struct CutProgram : RecordedProgram {
  std::vector<PieceId> piece_of;  ///< by node; `none` where it is a leaf, not needed, or free

  struct Stage {
    NodeId first = 0;    ///< node of the forward part
    double forward = 0;  ///< seconds, by the machine
    double backward = 0;
    Bytes incoming = 0;     ///< of values that cross its begin, in one micro-batch
    bool has_loop = false;  ///< whose states its backward part reads
  };
  std::vector<Stage> stages;

  PieceId pieces() const { return static_cast<PieceId>(2 * stages.size()); }
};

/// Cuts a loss and its gradients, or a value. Stages are found by `divide`; where there are fewer
/// operations than stages, the last ones are empty. Throws as `record_loss`.
std::unique_ptr<CutProgram> cut_loss(const Var& loss, int stages);
std::unique_ptr<CutProgram> cut_value(const Var& value, int stages);

/// The pieces, in order: forward in stage 0, 1, …, backward in S − 1, S − 2, …. Of the stages that
/// compute again, the backward piece holds the forward nodes too, and reads what comes into the
/// stage; of the others it reads what adjoints read.
std::vector<Piece> pieces_of(const CutProgram& program, const std::vector<bool>& computes_again);

}  // namespace palimpsest
