#pragma once

#include <memory>
#include <vector>

#include "strategy/parallel/partition/piece.h"
#include "strategy/parallel/pipeline/pipeline_schedule.h"

namespace palimpsest {

/// The recorded nodes of a micro-batch, with or without gradients, and the stages they are cut
/// into. A stage is a range of the forward part with the adjoints of its nodes. So a value's
/// adjoint is summed in the same order as on one tape, whichever stages add to it.
struct CutProgram : RecordedProgram {
  std::vector<PieceId> piece_of;  ///< by node; `none` for a leaf, or if free or not needed

  struct Stage {
    NodeId first = 0;    ///< node of the forward part
    double forward = 0;  ///< seconds, by the machine
    double backward = 0;
    Bytes incoming = 0;     ///< bytes of values that cross its begin, per micro-batch
    bool has_loop = false;  ///< its backward part reads the loop's states
  };
  std::vector<Stage> stages;

  PieceId pieces() const { return static_cast<PieceId>(2 * stages.size()); }
};

/// Cut a loss with its gradients and outputs, or a value. `divide` finds the stages. With fewer
/// operations than stages, the last stages are empty. They throw as `record_loss`.
std::unique_ptr<CutProgram> cut_loss(const LossAndOutputs& values, int stages);
std::unique_ptr<CutProgram> cut_value(const Var& value, int stages);

/// The pieces, in order: forward in stage 0, 1, …, backward in S − 1, S − 2, …. For a stage that
/// computes again, the backward piece contains the forward nodes too, and reads the stage's inputs.
/// For other stages it reads the values that adjoints read.
std::vector<Piece> pieces_of(const CutProgram& program, const std::vector<bool>& computes_again);

}  // namespace palimpsest
