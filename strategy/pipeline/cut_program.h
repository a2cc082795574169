#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "autodiff/var.h"
#include "checkpoint/machine.h"
#include "strategy/loops/step_program.h"
#include "strategy/pipeline/pipeline_schedule.h"

namespace palimpsest {

/// What was recorded of a micro-batch, with its gradients or without, and the stages that it is cut
/// into: ranges of the forward part, each with the adjoints of its nodes. So a value's adjoint is
/// the sum that it is on one tape, whichever stages add to it.
struct CutProgram {
  Tape tape;            ///< all of it; holds no values but leaves of the backward part
  ValueId outcome = 0;  ///< the loss, or a value
  NodeId backward_begins = 0;
  std::vector<ValueId> gradients;  ///< with respect to the parameters; none of a value
  std::vector<PieceId> piece_of;   ///< by node; `none` where it is a leaf, not needed, or free
  /// False where nodes do what depends on more than what was recorded, such as users' operations.
  bool comes_again = true;

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

/// Cuts a loss and its gradients, or a value. Stages are found by `divide`. The tape is left as it
/// was. Throws `ShapeError` for a loss that is no scalar, `ArgumentError` for fewer operations than
/// stages.
std::unique_ptr<CutProgram> cut_loss(const Var& loss, int stages);
std::unique_ptr<CutProgram> cut_value(const Var& value, int stages);

/// True when `outcome` was recorded as that of the program was, but for how often its tape was
/// cleared.
bool is_recorded_again(const CutProgram& program, const Var& outcome);

/// One of the pieces of a program, recorded on a tape of its own where what comes from other pieces
/// are leaves without values.
struct Piece {
  int stage = 0;
  bool is_backward = false;
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  StepProgram::Wanted wanted;  ///< on that tape

  std::vector<ValueId> arguments;  ///< of the program; as those wanted
  struct Result {
    enum class Use : std::uint8_t { other_pieces, outcome, gradient } use;
    ValueId value;              ///< of the program
    std::size_t parameter = 0;  ///< of a gradient
  };
  std::vector<Result> results;  ///< as those wanted

  struct Leaf {
    ValueId own;
    ValueId recorded;  ///< of the program's forward part
  };
  std::vector<Leaf> leaves;
};

/// The pieces, in order. Of the stages that compute again, the backward piece holds the forward
/// nodes too, and reads what comes into the stage; of the others it reads what adjoints read.
std::vector<Piece> pieces_of(const CutProgram& program, const std::vector<bool>& computes_again);

}  // namespace palimpsest
