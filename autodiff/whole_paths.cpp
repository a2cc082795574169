#include "autodiff/whole_paths.h"

#include <algorithm>
#include <string>
#include <vector>

#include "autodiff/error.h"
#include "autodiff/recording_guards.h"

namespace palimpsest {
namespace {

bool is_differentiable(const Tape& tape, NodeId node) {
  return !tape.is_blocked(node) && tape.operation(node).vjp != nullptr;
}

/// The values, and those that they depend on by derivatives, marked by value.
std::vector<bool> behind(Tape& tape, std::span<const Var> ys) {
  NodeId last = 0;
  for (const Var& y : ys) last = std::max(last, y.node());
  std::vector<bool> marked(tape.first_output(last) + tape.output_count(last));
  for (const Var& y : ys) marked[y.id()] = true;
  for (NodeId node = last + 1; node-- > 0;) {
    if (!is_differentiable(tape, node)) continue;
    const ValueId first = tape.first_output(node);
    bool is_marked = false;
    for (ValueId i = 0; i < tape.output_count(node); ++i) is_marked |= marked[first + i];
    if (!is_marked) continue;
    for (const ValueId input : tape.inputs(node)) {
      if (is_floating(tape.dtype(input))) marked[input] = true;
    }
  }
  return marked;
}

/// The captured value behind `ys` that depends on `x` outside, or an empty handle. `x` is a value
/// of their tape, as in `depends`, which calls this once for each enclosing function.
Var path_outside(std::span<const Var> ys, const std::vector<bool>& marked, const Var& x);

bool depends(const Var& y, const Var& x) {
  const std::vector<bool> marked = behind(y.tape(), {&y, 1});
  if (x.id() < marked.size() && marked[x.id()]) return true;
  return path_outside({&y, 1}, marked, x).defined();
}

Var path_outside(std::span<const Var> ys, const std::vector<bool>& marked, const Var& x) {
  const Var origin = RedirectedRecording::original_of(x);
  if (!origin.defined() || !origin.is_current()) return {};
  Tape& tape = ys.front().tape();
  for (ValueId value = 0; value < marked.size(); ++value) {
    if (!marked[value] || value == x.id() || !tape.is_leaf(tape.producer(value))) continue;
    const Var other = RedirectedRecording::original_of(tape.var(value));
    if (!other.defined() || !other.belongs_to(origin.tape()) || other == origin) continue;
    if (depends(other, origin)) return other;
  }
  return {};
}

}  // namespace

void require_whole_paths(std::span<const Var> ys, std::span<const Var> xs, const Where& where) {
  if (ys.empty()) return;
  std::vector<bool> marked;
  for (const Var& x : xs) {
    const Var origin = RedirectedRecording::original_of(x);
    if (!origin.defined()) continue;
    if (marked.empty()) marked = behind(ys.front().tape(), ys);
    const Var other = path_outside(ys, marked, x);
    if (!other.defined()) continue;
    const auto named = [](Var value) {
      for (Var outer; (outer = RedirectedRecording::original_of(value)).defined();) value = outer;
      return value.tape().describe(value.node()) + " " + to_string(value.type());
    };
    throw ArgumentError("gradient",
                        "the body of a loop differentiates with respect to " + named(origin) +
                            ", and uses " + named(other) +
                            ", which depends on it outside of the body; compute the gradient "
                            "before the loop, or record what depends on it inside the body",
                        where);
  }
}

}  // namespace palimpsest
