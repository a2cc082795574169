#pragma once

#include "autodiff/operation.h"
#include "strategy/loops/advance.h"
#include "strategy/loops/loop_division.h"

namespace palimpsest {

// The last two outputs of either part are decided with the plan: one without elements that says how
// steps are run, by its second size the share of one, or 0 where it is unlimited, and by its third
// how many states are made ahead; and the room in which states are held.

inline ValueType steps_type(Bytes share, std::uint32_t ahead) {
  internal_check(share > 0, "a step of a loop has no share of its memory");
  return {Shape{0, share == unlimited ? 0 : share, std::int64_t{ahead}}, DType::i64};
}
inline ValueType room_type(Bytes bytes) { return {Shape{bytes / size_of(DType::i64)}, DType::i64}; }
inline Bytes share_in(const ValueType& type) {
  return type.shape[1] == 0 ? unlimited : type.shape[1];
}
inline std::uint32_t ahead_in(const ValueType& type) {
  return static_cast<std::uint32_t>(type.shape[2]);
}
inline const ValueType& steps_given(std::span<const Operand> outputs) {
  return outputs[outputs.size() - 2].type;
}

/// Adds to the note about `loop` what a part of it took; `reversed` steps with a tape.
void note(const Loop& loop, const KernelCall& call, std::uint64_t steps, const Advance& advance,
          std::uint64_t reversed, const HeldStates* held);

/// The kernel of `scan`. Inputs: state, inputs, captured. Outputs: the last state, outputs, the
/// number of steps where that was not known, how steps are run, and the room, in which as many
/// snapshots are left as it holds. Takes `forward_memory` of workspace.
void run_forward(const Loop& loop, const KernelCall& call);

/// The kernel of its adjoint. Inputs: those of `scan`, its room, the number of steps where that was
/// not known, the adjoints of the last state and of outputs that there are. Outputs: the adjoints
/// asked for of state, inputs and captured, how steps are run, and the room, used up. Where that is
/// empty it makes the snapshots itself.
void run_backward(const LoopGradient& gradient, const KernelCall& call);
Bytes backward_workspace(const LoopGradient& gradient, Bytes room, const ValueType& steps,
                         int threads);

}  // namespace palimpsest
