#pragma once

#include "autodiff/operation.h"
#include "strategy/loops/advance.h"
#include "strategy/loops/loop_division.h"

namespace palimpsest {

// The last two outputs of each part are decided by the plan. The second last has no elements; its
// shape encodes how steps are run. Its second size is the step budget (0 for unlimited), its third
// the number of states made ahead. Its fourth size is the budget of the run, for a loop with a
// journal (0 for unlimited). The last output is the memory for held states.

inline ValueType steps_type(Bytes share, std::uint32_t ahead, Bytes run_budget) {
  internal_check(share > 0, "a step of a loop has no share of its memory");
  return {Shape{0, share == unlimited ? 0 : share, std::int64_t{ahead},
                run_budget == unlimited ? 0 : run_budget},
          DType::i64};
}
inline ValueType state_budget_type(Bytes bytes) {
  return {Shape{bytes / size_of(DType::i64)}, DType::i64};
}
inline Bytes share_in(const ValueType& type) {
  return type.shape[1] == 0 ? unlimited : type.shape[1];
}
inline std::uint32_t ahead_in(const ValueType& type) {
  return static_cast<std::uint32_t>(type.shape[2]);
}
inline Bytes run_budget_in(const ValueType& type) {
  return type.shape[3] == 0 ? unlimited : type.shape[3];
}
inline const ValueType& steps_given(std::span<const Operand> outputs) {
  return outputs[outputs.size() - 2].type;
}

/// Adds the work of one part to the counts of `loop`. `reversed` is the number of steps run to be
/// differentiated.
void note(const Loop& loop, const KernelCall& call, std::uint64_t steps, const Advance& advance,
          std::uint64_t reversed, const HeldStates* held);

/// The kernel of `scan`. Inputs: state, inputs, captured values. Outputs: the last state, outputs,
/// the number of steps if it was not known, how steps are run, and the held states. As many
/// snapshots are held as fit. Needs a workspace of `forward_memory` bytes.
void run_forward(const Loop& loop, const KernelCall& call);

/// The kernel of its adjoint. Inputs: those of `scan`, its held states, the number of steps if it
/// was not known, and the given adjoints of the last state and of outputs. Outputs: the requested
/// adjoints of state, inputs and captured values, how steps are run, and the memory of the held
/// states, used up. If that memory is empty, it makes the snapshots itself.
void run_backward(const LoopGradient& gradient, const KernelCall& call);
Bytes backward_workspace(const LoopGradient& gradient, Bytes room, const ValueType& steps,
                         int threads);

}  // namespace palimpsest
