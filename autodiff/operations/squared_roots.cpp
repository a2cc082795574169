#include "autodiff/operations/squared_roots.h"

#include <algorithm>
#include <string_view>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduction.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// The root y, and the values under it.
struct Root {
  Var y;
  Var x;
  const Attributes& attributes;

  ReduceAttributes reduced() const { return attributes.as<ReduceAttributes>(); }
  Axes axes() const {
    const AxisMask mask = reduced().mask;
    Axes list;
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (mask[static_cast<std::size_t>(axis)]) list.push_back(axis);
    }
    return list;
  }
};

/// Squares of 16-bit numbers leave their range before the root does, so they are f32.
Var wide_square(const Var& x, const Where& where) {
  return square(cast(x, compute_dtype(x.dtype()), where), where);
}

Var square_of_norm(const Root& r, const Where& where) {
  if (r.reduced().number != 2) return {};
  const Var total = sum(wide_square(r.x, where), r.axes(), false, where);
  return reshape(cast(total, r.y.dtype(), where), r.y.shape(), where);
}

Var square_of_hypot(const Root& r, const Where& where) {
  const Tape& tape = r.y.tape();
  const Var other = r.y.tape().var(tape.inputs(r.y.node())[1], where);
  const Var total = add(wide_square(r.x, where), wide_square(other, where), where);
  return cast(total, r.y.dtype(), where);
}

Var square_of_deviation(const Root& r, const Where& where) {
  const ReduceAttributes a = r.reduced();
  const auto count = static_cast<double>(reduced_count(r.x.shape(), a.mask));
  return reshape(variance(r.x, r.axes(), count - a.number, false, where), r.y.shape(), where);
}

Var square_of_abs(const Root& r, const Where& where) { return square(r.x, where); }

struct Rule {
  std::string_view root;
  Var (*square)(const Root&, const Where&);
};

constexpr Rule rules[] = {{"norm", square_of_norm},
                          {"hypot", square_of_hypot},
                          {"standard_deviation", square_of_deviation},
                          {"abs", square_of_abs}};

bool are_recorded_alike(const Tape& tape, NodeId a, NodeId b) {
  return &tape.operation(a) == &tape.operation(b) && tape.attributes(a) == tape.attributes(b) &&
         std::ranges::equal(tape.inputs(a), tape.inputs(b));
}

}  // namespace

Var product_of_roots(const Var& a, const Var& b, const Where& where) {
  for (const Var& operand : {a, b}) {
    if (!operand.defined() || !operand.is_current()) return {};  // an error of the caller's
  }
  Tape& tape = a.tape();
  // In the body of a loop, the root of another tape is a number that need not be computed again.
  if (&tape != &b.tape() || &tape != &tape.recording() || !is_floating(a.dtype())) return {};
  const NodeId node = a.node();
  const auto rule = std::ranges::find(rules, tape.operation(node).name, &Rule::root);
  if (rule == std::end(rules)) return {};
  if (a.id() != b.id() && !are_recorded_alike(tape, node, b.node())) return {};
  const Attributes attributes = tape.attributes(node);  // a copy, since the tape grows
  return rule->square({a, tape.var(tape.inputs(node)[0], where), attributes}, where);
}

}  // namespace palimpsest
