#pragma once

#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// A loss that was recorded, with its gradients, or a value: to be cut into pieces.
struct RecordedProgram {
  Tape tape;            ///< all of it; holds no values but leaves of the backward part
  ValueId outcome = 0;  ///< the loss, or a value
  NodeId backward_begins = 0;
  std::vector<ValueId> gradients;  ///< with respect to the parameters; none of a value
  /// By node, one of the forward part that it goes with: of that, the node itself. What is made of
  /// adjoints of several nodes, such as the gradient of a parameter that these read, goes with the
  /// first of them, and what is made of no adjoint with what reads it.
  std::vector<NodeId> owners;
  /// False where nodes do what depends on more than what was recorded, such as users' operations.
  bool comes_again = true;
};

/// Records a loss and its gradients, or a value, in a program that is empty. The tape is left as it
/// was. Throws `ShapeError` for a loss that is no scalar.
void record_loss(RecordedProgram& program, const Var& loss);
void record_value(RecordedProgram& program, const Var& value);

/// True when `outcome` was recorded as that of the program was, but for how often its tape was
/// cleared.
bool is_recorded_again(const RecordedProgram& program, const Var& outcome);

/// True for a node that takes neither time nor memory: it belongs to no piece, and is recorded
/// wherever it is read.
bool is_free(const Tape& tape, NodeId node);

/// True for an adjoint that reads the states of a loop, which lie in memory that no other piece
/// knows of: the loop runs in the same one.
bool reads_states(const Tape& tape, NodeId node);

}  // namespace palimpsest
