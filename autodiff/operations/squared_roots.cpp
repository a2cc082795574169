#include "autodiff/operations/squared_roots.h"

#include <cstdint>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduction.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// Squares of 16-bit numbers leave their range before the root does, so they are f32.
Var wide_square(const Var& x, const Where& where) {
  return square(cast(x, compute_dtype(x.dtype()), where), where);
}

Axes axes_of(const AxisMask& mask, int rank) {
  Axes axes;
  for (int axis = 0; axis < rank; ++axis) {
    if (mask[static_cast<std::size_t>(axis)]) axes.push_back(axis);
  }
  return axes;
}

enum class Root : std::uint8_t { none, hypot, abs, norm, deviation };

Root root_made_by(const Operation& operation) {
  constexpr std::size_t hypot = functions::position<functions::Hypot, functions::Binary>;
  const std::size_t abs = unary_index(functions::place_of<functions::Abs>);
  if (&operation == norm_operations().front()) return Root::norm;
  if (&operation == unary_operations()[abs]) return Root::abs;
  if (&operation == moment_operations()[1]) return Root::deviation;
  return &operation == &binary_operation(hypot) ? Root::hypot : Root::none;
}

/// The square of a root from the inputs of its node. Undefined for norms with p ≠ 2.
Var square_of(const Var& root, Root kind, const Where& where) {
  Tape& tape = root.tape();
  const NodeId node = root.node();
  const auto input = [&](std::size_t i) { return tape.var(tape.inputs(node)[i], where); };
  const auto as_root = [&](const Var& y) {
    return reshape(cast(y, root.dtype(), where), root.shape(), where);
  };
  const Var x = input(0);
  if (kind == Root::abs) return square(x, where);
  if (kind == Root::hypot) {
    const Var other = input(1);
    return as_root(add(wide_square(x, where), wide_square(other, where), where));
  }
  const auto reduced = tape.attributes(node).as<ReduceAttributes>();  // a copy: the tape grows
  if (kind == Root::deviation) {
    const Operation& variance = *moment_operations()[0];
    return as_root(record_reduction(variance, x, reduced, false, x.dtype(), where));
  }
  if (reduced.number != 2) return {};
  const Axes axes = axes_of(reduced.mask, x.rank());
  return as_root(sum(wide_square(x, where), axes, false, where));
}

/// Whether two values are recorded by the same operations on the same leaves. Looks at few nodes.
bool are_recorded_alike(const Tape& tape, ValueId a, ValueId b, int depth = 4) {
  if (a == b) return true;
  const NodeId first = tape.producer(a);
  const NodeId second = tape.producer(b);
  if (depth == 0 || &tape.operation(first) != &tape.operation(second) ||
      tape.is_blocked(first) != tape.is_blocked(second) ||
      a - tape.first_output(first) != b - tape.first_output(second) ||
      !(tape.attributes(first) == tape.attributes(second))) {
    return false;
  }
  const auto inputs = tape.inputs(first);
  const auto others = tape.inputs(second);
  if (inputs.empty() || inputs.size() != others.size()) return false;  // leaves are their own
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!are_recorded_alike(tape, inputs[i], others[i], depth - 1)) return false;
  }
  return true;
}

}  // namespace

Var product_of_roots(const Var& a, const Var& b, const Where& where) {
  for (const Var& operand : {a, b}) {
    if (!operand.defined() || !operand.is_current()) return {};  // an error of the caller's
  }
  Tape& tape = a.tape();
  // In the body of a loop, the root of another tape is a number that need not be computed again.
  if (&tape != &b.tape() || &tape != &tape.recording()) return {};
  const Root kind = root_made_by(tape.operation(a.node()));
  if (kind == Root::none || tape.is_blocked(a.node()) || !is_floating(a.dtype()) ||
      !are_recorded_alike(tape, a.id(), b.id())) {
    return {};
  }
  return square_of(a, kind, where);
}

}  // namespace palimpsest
