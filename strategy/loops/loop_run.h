#pragma once

#include <array>
#include <span>

#include "autodiff/operation.h"
#include "strategy/loops/advance.h"
#include "strategy/loops/loop_division.h"

namespace palimpsest {

// The last three outputs of each part are decided by the plan. Two have no elements: the sizes of
// their shapes encode a `LoopDivision` (0 for unlimited bytes), except the number of snapshots and
// that of steps that keep values, and the key of the `HeldComponents`. The last output is the
// memory for held states and kept values. A backward part uses up that of the forward part, but
// only reads it if there are kept values.

inline std::array<ValueType, 2> division_types(const LoopDivision& division,
                                               std::uint64_t held = 0) {
  internal_check(division.share > 0, "a step of a loop has no share of its memory");
  const auto size = [](Bytes bytes) { return bytes == unlimited ? 0 : bytes; };
  const auto key = static_cast<std::int64_t>(division.values);
  // The product of the sizes other than 0 is limited. A loop with a journal keeps no values.
  const auto components = static_cast<std::int64_t>(held);
  return {ValueType{Shape{0, size(division.share), std::int64_t{division.ahead}, components},
                    DType::i64},
          ValueType{Shape{0, size(division.run_budget), key}, DType::i64}};
}
inline ValueType state_budget_type(Bytes bytes) {
  return {Shape{bytes / size_of(DType::i64)}, DType::i64};
}
/// The division that these types encode, with 0 snapshots, and the memory of `room` bytes.
LoopDivision division_in(const ValueType& first, const ValueType& second, Bytes room,
                         const Loop& loop);
/// The components that the first of these types encodes.
inline const HeldComponents& held_in(const ValueType& first, const Loop& loop) {
  return loop.held(static_cast<std::uint64_t>(first.shape[3]));
}
inline const HeldComponents& held_given(std::span<const Operand> outputs, const Loop& loop) {
  return held_in(outputs.last(3)[0].type, loop);
}
inline LoopDivision division_given(std::span<const Operand> outputs, const Operand& room,
                                   const Loop& loop) {
  const auto last = outputs.last(3);
  return division_in(last[0].type, last[1].type, room.type.bytes(), loop);
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
Bytes backward_workspace(const LoopGradient& gradient, const HeldComponents& held, Bytes room,
                         const LoopDivision& division, int threads);

/// These kernels where all states are held and the last steps keep values.
void run_forward_keeping(const HeldComponents& held, const KernelCall& call,
                         const LoopDivision& division);
void run_backward_from_kept(const LoopGradient& gradient, const KernelCall& call,
                            const LoopDivision& division);

}  // namespace palimpsest
