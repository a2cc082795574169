#pragma once

#include "autodiff/operation.h"
#include "strategy/loops/advance.h"
#include "strategy/loops/loop_division.h"

namespace palimpsest {

// The last two outputs of each part are decided by the plan. The second last has no elements; the
// sizes of its shape encode a `LoopDivision`, except the number of snapshots (0 for unlimited
// bytes). The last output is the memory for held states and kept values.

inline ValueType steps_type(const LoopDivision& division) {
  internal_check(division.share > 0, "a step of a loop has no share of its memory");
  const auto size = [](Bytes bytes) { return bytes == unlimited ? 0 : bytes; };
  return {Shape{0, size(division.share), std::int64_t{division.ahead}, size(division.run_budget),
                std::int64_t{division.kept}, std::int64_t{division.values}},
          DType::i64};
}
inline ValueType state_budget_type(Bytes bytes) {
  return {Shape{bytes / size_of(DType::i64)}, DType::i64};
}
/// The division that such a type encodes, with 0 snapshots.
inline LoopDivision division_in(const ValueType& type) {
  const auto bytes = [](std::int64_t size) { return size == 0 ? unlimited : size; };
  const auto number = [](std::int64_t size) { return static_cast<std::uint32_t>(size); };
  return {.share = bytes(type.shape[1]),
          .ahead = number(type.shape[2]),
          .kept = number(type.shape[4]),
          .values = number(type.shape[5]),
          .run_budget = bytes(type.shape[3])};
}
inline LoopDivision division_given(std::span<const Operand> outputs) {
  return division_in(outputs[outputs.size() - 2].type);
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
Bytes backward_workspace(const LoopGradient& gradient, Bytes room, const LoopDivision& division,
                         int threads);

/// These kernels where all states are held and the last steps keep values.
void run_forward_keeping(const Loop& loop, const KernelCall& call, const LoopDivision& division);
void run_backward_from_kept(const LoopGradient& gradient, const KernelCall& call,
                            const LoopDivision& division);

}  // namespace palimpsest
