#pragma once

#include <functional>
#include <span>

#include "autodiff/tape.h"

namespace palimpsest {

/// Runs one kernel. If the kernel does not support 16-bit types, such operands are widened to f32
/// before the call and narrowed after it. The copies are in the call's workspace, which must hold
/// at least `workspace_of(node, threads)` bytes.
void execute(const Operation& operation, const KernelCall& call);

/// Calls `compute` with f32 copies of all 16-bit operands, for a kernel that supports only some of
/// them natively. The copies take `widening_bytes(node)` from the end of the call's workspace.
void compute_widened(void (*compute)(const KernelCall&), const KernelCall& call);
Bytes widening_bytes(const NodeView& node);

/// Allocates the storage for `execute_on_tape`.
using Allocate = std::function<Buffer(Bytes)>;

/// Computes the outputs of `node` into fresh buffers, from inputs that are present on the tape.
/// Outputs that are already present are kept. With `anomaly`, calls `check_finite`.
void execute_on_tape(Tape& tape, NodeId node, const Allocate& allocate = allocate_buffer,
                     bool anomaly = false);

/// Throws `AnomalyError` if an output of `node` contains a NaN or an infinity. The message names
/// the node, its line, all shapes and the range of each input.
void check_finite(const Tape& tape, NodeId node, std::span<const Operand> inputs,
                  std::span<const Operand> outputs);

/// `bytes` rounded up to the alignment of buffers.
constexpr Bytes aligned(Bytes bytes) {
  constexpr Bytes step = static_cast<Bytes>(buffer_alignment);
  return (bytes + step - 1) / step * step;
}

}  // namespace palimpsest
