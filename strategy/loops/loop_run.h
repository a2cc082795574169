#pragma once

#include "autodiff/operation.h"
#include "strategy/loops/loop_layout.h"

namespace palimpsest {

/// How many states beside the first are held: as many as the loop's own budget leaves room for
/// beside a step, or as `Loop::snapshots` says. Throws `BudgetError` when that is too small for
/// any.
std::uint32_t own_snapshots(const LoopGradient& gradient, int threads);

/// The kernel of `scan`. Inputs: state, inputs, captured. Outputs: the last state, outputs, and the
/// snapshots, as many as fit what they are given.
void run_forward(const Loop& loop, const KernelCall& call);
Bytes forward_workspace(const Loop& loop, int threads);

/// The kernel of its adjoint. Inputs: those of `scan`, the snapshots, the adjoints of the last
/// state and of outputs that there are. Outputs: the adjoints asked for of state, inputs and
/// captured. Where it is given no snapshots it makes them.
void run_backward(const LoopGradient& gradient, const KernelCall& call);
Bytes backward_workspace(const LoopGradient& gradient, Bytes snapshots, int threads);

}  // namespace palimpsest
