#pragma once

#include <vector>

#include "autodiff/var.h"
#include "strategy/base/loss_and_outputs.h"

namespace palimpsest {

/// A recorded program to be cut into pieces: a loss with its gradients, or a value.
struct RecordedProgram {
  Tape tape;            ///< both parts; holds no values except leaves of the backward part
  ValueId outcome = 0;  ///< the loss, or a value
  NodeId backward_begins = 0;
  std::vector<ValueId> gradients;  ///< with respect to the parameters; empty for a value
  std::vector<ValueId> outputs;    ///< further values that the caller receives
  /// By node, the forward node that owns it. A forward node owns itself. A backward node made from
  /// adjoints of several nodes belongs to the first of them; an example is the gradient of a
  /// parameter that several nodes read. A backward node made from no adjoint belongs with its
  /// readers, the last one if there are several.
  std::vector<NodeId> owners;
  /// False if the effect of some node depends on more than what is recorded, such as a user's
  /// operation.
  bool comes_again = true;
};

/// Records a loss with its gradients and outputs, or a value, in an empty program. The tape stays
/// unchanged. Throws `ShapeError` for a loss that is not a scalar.
void record_loss(RecordedProgram& program, const LossAndOutputs& values);
void record_value(RecordedProgram& program, const Var& value);

/// True when the tape of a loss or a value records the same program again. How often the tape was
/// cleared does not matter.
bool is_recorded_again(const RecordedProgram& program, const LossAndOutputs& values);

/// True for a node that takes neither time nor memory. It belongs to no piece and is recorded
/// wherever it is read.
bool is_free(const Tape& tape, NodeId node);

/// True for an adjoint that reads the states of a loop. The states lie in memory private to a
/// piece, so the loop must run in the same piece.
bool reads_states(const Tape& tape, NodeId node);

}  // namespace palimpsest
