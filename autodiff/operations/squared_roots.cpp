#include "autodiff/operations/squared_roots.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduction.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

/// Squares of 16-bit numbers leave their range before the root does, so they are f32.
Var wide_square(const Var& x, const Where& where) {
  return square(cast(x, compute_dtype(x.dtype()), where), where);
}

/// Σ x² over the axes of the norm y.
Var square_of_norm(const Var& y, const Var& x, const ReduceAttributes& reduced,
                   const Where& where) {
  Axes axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (reduced.mask[static_cast<std::size_t>(axis)]) axes.push_back(axis);
  }
  const Var total = sum(wide_square(x, where), axes, false, where);
  return reshape(cast(total, y.dtype(), where), y.shape(), where);
}

/// a² + b².
Var square_of_hypot(const Var& y, const Var& a, const Var& b, const Where& where) {
  return cast(add(wide_square(a, where), wide_square(b, where), where), y.dtype(), where);
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
  const NodeId node = a.node();
  constexpr std::size_t hypot = functions::position<functions::Hypot, functions::Binary>;
  const bool is_hypot = &tape.operation(node) == &binary_operation(hypot);
  if (!is_hypot && &tape.operation(node) != norm_operations().front()) return {};
  if (tape.is_blocked(node) || !is_floating(a.dtype()) ||
      !are_recorded_alike(tape, a.id(), b.id())) {
    return {};
  }
  const Var x = tape.var(tape.inputs(node)[0], where);
  if (is_hypot) return square_of_hypot(a, x, tape.var(tape.inputs(node)[1], where), where);
  const auto reduced = tape.attributes(node).as<ReduceAttributes>();  // a copy: the tape grows
  return reduced.number == 2 ? square_of_norm(a, x, reduced, where) : Var();
}

}  // namespace palimpsest
