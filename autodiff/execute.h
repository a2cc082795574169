#pragma once

#include <functional>
#include <span>

#include "autodiff/tape.h"

namespace palimpsest {

/// Runs one kernel. 16-bit operands of a kernel that does not know them are widened to f32 before
/// and narrowed after, in the call's workspace, which holds at least `workspace_of(node, threads)`
/// bytes.
void execute(const Operation& operation, const KernelCall& call);

/// Calls `compute` with f32 in place of every 16-bit operand, for a kernel that takes some of these
/// as they are: what it needs for that, `widening_bytes(node)`, is taken from the end of the call's
/// workspace.
void compute_widened(void (*compute)(const KernelCall&), const KernelCall& call);
Bytes widening_bytes(const NodeView& node);

/// Where `execute_on_tape` gets storage.
using Allocate = std::function<Buffer(Bytes)>;

/// Computes the outputs of `node` from inputs that are present on the tape into fresh buffers;
/// those present already stay as they are. With `anomaly`, checks them by `check_finite`.
void execute_on_tape(Tape& tape, NodeId node, const Allocate& allocate = allocate_buffer,
                     bool anomaly = false);

/// Throws `AnomalyError` when an output of `node` holds a NaN or an infinity. The message names the
/// node, its line, all shapes and the range of each input.
void check_finite(const Tape& tape, NodeId node, std::span<const Operand> inputs,
                  std::span<const Operand> outputs);

/// Bytes rounded up to the alignment of buffers.
constexpr Bytes aligned(Bytes bytes) {
  constexpr Bytes step = static_cast<Bytes>(buffer_alignment);
  return (bytes + step - 1) / step * step;
}

}  // namespace palimpsest
