#include "autodiff/operations/squared_roots.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/composition.h"
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

/// The square of the root that the node of `p` makes, from its inputs.
Var square_of(const Pullback& p, std::span<const Var> inputs) {
  const Where where = p.where();
  const Var& x = inputs[0];
  const auto as_root = [&](const Var& y) {
    const ValueType type = p.output().type();
    return reshape(cast(y, type.dtype, where), type.shape, where);
  };
  const Root kind = root_made_by(p.tape().operation(p.output().node()));
  if (kind == Root::abs) return square(x, where);
  if (kind == Root::hypot) {
    return as_root(add(wide_square(x, where), wide_square(inputs[1], where), where));
  }
  const auto reduced = p.attributes().as<ReduceAttributes>();  // a copy: the tape grows
  if (kind == Root::deviation) {
    const Operation& variance = *moment_operations()[0];
    return as_root(record_reduction(variance, x, reduced, false, x.dtype(), where));
  }
  return as_root(sum(wide_square(x, where), axes_of(reduced.mask, x.rank()), false, where));
}

bool is_square(const Operation& operation) {
  return &operation == unary_operations()[unary_index(functions::place_of<functions::Square>)];
}

bool is_product(const Operation& operation) {
  return &operation ==
         &binary_operation(functions::position<functions::Multiply, functions::Binary>);
}

/// Whether the node is a root whose square is passed through.
bool is_root(const Tape& tape, NodeId node) {
  const Root kind = root_made_by(tape.operation(node));
  if (kind == Root::none || tape.is_blocked(node)) return false;
  return kind != Root::norm || tape.attributes(node).as<ReduceAttributes>().number == 2;
}

bool is_among(std::span<const Var> variables, ValueId value) {
  return std::ranges::find(variables, value, &Var::id) != variables.end();
}

/// Whether two values are recorded by the same operations on the same leaves. Looks at few nodes.
/// False if they differ and one of them, or of those that they are made from, is a variable.
bool are_recorded_alike(const Tape& tape, ValueId a, ValueId b, std::span<const Var> variables,
                        int depth = 4) {
  if (a == b) return true;
  const NodeId first = tape.producer(a);
  const NodeId second = tape.producer(b);
  // Some operations have their target in the type of the output only.
  if (depth == 0 || &tape.operation(first) != &tape.operation(second) ||
      tape.type(a) != tape.type(b) || tape.is_blocked(first) != tape.is_blocked(second) ||
      a - tape.first_output(first) != b - tape.first_output(second) ||
      !(tape.attributes(first) == tape.attributes(second)) || is_among(variables, a) ||
      is_among(variables, b)) {
    return false;
  }
  const auto inputs = tape.inputs(first);
  const auto others = tape.inputs(second);
  if (inputs.empty() || inputs.size() != others.size()) return false;  // leaves are their own
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!are_recorded_alike(tape, inputs[i], others[i], variables, depth - 1)) return false;
  }
  return true;
}

}  // namespace

std::optional<NodeId> root_squared_by(const Tape& tape, NodeId node,
                                      std::span<const Var> variables) {
  const Operation& operation = tape.operation(node);
  if (!is_square(operation) && !is_product(operation)) return {};
  const auto inputs = tape.inputs(node);
  const ValueId root = inputs.front();
  if (!is_root(tape, tape.producer(root)) || is_among(variables, root) ||
      !are_recorded_alike(tape, root, inputs.back(), variables)) {
    return {};
  }
  return tape.producer(root);
}

void pull_back_squared_root(const Pullback& p) {
  pull_back_through(
      p, [&](std::span<const Var> inputs) { return std::vector<Var>{square_of(p, inputs)}; });
}

}  // namespace palimpsest
