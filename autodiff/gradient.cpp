#include "autodiff/gradient.h"

#include <algorithm>
#include <array>

#include "autodiff/adjoint_origins.h"
#include "autodiff/adjoints.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/squared_roots.h"
#include "autodiff/recording_guards.h"
#include "autodiff/whole_paths.h"

namespace palimpsest {

Pullback::Pullback(Tape& tape, NodeId node, std::span<const Var> output_adjoints,
                   std::span<InputAdjoint> input_adjoints, std::span<const bool> wanted)
    : tape_(&tape),
      node_(node),
      output_adjoints_(output_adjoints),
      input_adjoints_(input_adjoints),
      wanted_(wanted) {}

void Pullback::throw_index(const char* what, std::size_t i, std::size_t count) const {
  throw ArgumentError(tape_->operation(node_).name,
                      "its derivative asks for number " + std::to_string(i) + " of " +
                          std::to_string(count) + " " + what + "; count from 0",
                      where());
}

Var Pullback::input(std::size_t i) const { return Var(*tape_, tape_->inputs(node_)[input_at(i)]); }

Var Pullback::output(std::size_t i) const {
  return Var(*tape_, tape_->first_output(node_) + static_cast<ValueId>(output_at(i)));
}

Var Pullback::adjoint(std::size_t i) const {
  return has_adjoint(i) ? output_adjoints_[i] : full_like(output(i), 0);
}

namespace {

/// Marks every value in nodes [first, last] through which a derivative flows from an x, and
/// registers the readers of all values.
void mark_reached(const Tape& tape, NodeId first, NodeId last, Adjoints& adjoints) {
  for (NodeId node = first; node <= last; ++node) {
    adjoints.note_reader(node, tape.inputs(node));
    if (tape.is_blocked(node) || tape.operation(node).vjp == nullptr) continue;
    const auto inputs = tape.inputs(node);
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](ValueId input) { return adjoints.reached(input); })) {
      continue;
    }
    const ValueId output = tape.first_output(node);
    for (ValueId i = 0; i < tape.output_count(node); ++i) {
      if (is_floating(tape.dtype(output + i))) adjoints.mark_reached(output + i);
    }
  }
}

/// Arrays for one node's pullback, reused so that the walk does not allocate.
struct Workbench {
  std::vector<Var> output_adjoints;
  std::vector<Pullback::InputAdjoint> input_adjoints;  // the first ones belong to the current node
  std::array<bool, 64> few{};
  std::unique_ptr<bool[]> many;
  std::size_t many_size = 0;

  std::span<bool> wanted(std::size_t count) {
    if (count <= few.size()) return {few.data(), count};
    if (count > many_size) {
      many = std::make_unique<bool[]>(count);
      many_size = count;
    }
    return {many.get(), count};
  }

  /// Empty adjoints for `count` inputs.
  std::span<Pullback::InputAdjoint> no_adjoints(std::size_t count) {
    if (count > input_adjoints.size()) input_adjoints.resize(count);
    const auto first = std::span(input_adjoints).first(count);
    for (Pullback::InputAdjoint& each : first) each = {};
    return first;
  }
};

/// Throws unless aᵀ·b is a product of matrices and has the type `type`.
void require_product(const Tape& tape, NodeId node, const Var& a, const Var& b,
                     const ValueType& type) {
  const Shape left = a.shape();
  const Shape right = b.shape();
  if (a.dtype() == type.dtype && b.dtype() == type.dtype && left.rank() == 2 && right.rank() == 2 &&
      left[0] == right[0] && type.shape == Shape{left[1], right[1]}) {
    return;
  }
  throw ShapeError(tape.operation(node).name,
                   "its derivative gave an input " + to_string(type) +
                       " the adjoint aᵀ·b with a = " + to_string(a.type()) + " and b = " +
                       to_string(b.type()) + "; give matrices whose product has the input's type",
                   tape.where(node));
}

/// Pulls back through a node, in a derivative by `variables`.
void pull_back(Tape& tape, NodeId node, Adjoints& adjoints, Workbench& bench,
               std::span<const Var> variables) {
  const ValueId first_output = tape.first_output(node);
  bench.output_adjoints.clear();
  bool any = false;
  for (ValueId i = 0; i < tape.output_count(node); ++i) {
    bench.output_adjoints.push_back(
        adjoints.reached(first_output + i) ? adjoints.sum(first_output + i) : Var());
    any |= bench.output_adjoints.back().defined();
  }
  if (!any) return;

  auto* vjp = tape.operation(node).vjp;
  if (const auto root = root_squared_by(tape, node, variables)) {
    node = *root;
    vjp = pull_back_squared_root;
  }
  const std::size_t inputs = tape.inputs(node).size();
  const std::span<bool> wanted = bench.wanted(inputs);
  bool needed = false;
  for (std::size_t i = 0; i < inputs; ++i) {
    wanted[i] = adjoints.reached(tape.inputs(node)[i]);
    needed |= wanted[i];
  }
  if (!needed) return;

  const std::span<Pullback::InputAdjoint> input_adjoints = bench.no_adjoints(inputs);
  const Blame blame(tape, node);
  vjp(Pullback(tape, node, bench.output_adjoints, input_adjoints, wanted));
  const auto require_here = [&](const Var& var) {
    if (!var.belongs_to(tape)) throw_foreign(var, tape.operation(node).name, tape.where(node));
  };
  for (std::size_t i = 0; i < inputs; ++i) {
    const auto& [adjoint, left, is_none] = input_adjoints[i];
    if (!wanted[i] || is_none || !adjoint.defined()) continue;
    require_here(adjoint);
    if (left.defined()) require_here(left);
    const ValueId input = tape.inputs(node)[i];  // no span survives, as the tape has grown
    if (left.defined()) {
      require_product(tape, node, left, adjoint, tape.type(input));
      adjoints.add_product(input, left, adjoint);
      continue;
    }
    if (tape.dtype(adjoint.id()) != tape.dtype(input) ||
        !tape.have_one_shape(adjoint.id(), input)) {
      throw ShapeError(tape.operation(node).name,
                       "its derivative gave input " + std::to_string(i) + " " +
                           to_string(tape.type(input)) + " an adjoint " +
                           to_string(adjoint.type()) + "; it must have the input's type",
                       tape.where(node));
    }
    adjoints.add(input, adjoint);
  }
}

void require_differentiable(std::span<const Var> vars, const char* role, const Where& where) {
  for (const Var& var : vars) {
    if (is_floating(var.dtype())) continue;
    throw DTypeError(
        "gradient",
        std::string(role) + " is " + to_string(var.type()) +
            "; derivatives exist for floating dtypes only, so cast it first or leave it out",
        where);
  }
}

std::vector<Var> all_here(Tape& tape, std::span<const Var> vars, const Where& where) {
  std::vector<Var> own;
  for (const Var& var : vars) own.push_back(tape.here(var, "gradient", where));
  return own;
}

/// Every y needs a seed of its type, or there are none.
void require_seeds(std::span<const Var> seeds, std::span<const Var> ys, const Where& where) {
  if (seeds.empty()) return;
  if (seeds.size() != ys.size()) {
    throw ArgumentError("gradient",
                        std::to_string(seeds.size()) + " seeds for " + std::to_string(ys.size()) +
                            " values; give one seed per value, or none",
                        where);
  }
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    if (seeds[i].type() == ys[i].type()) continue;
    throw ShapeError("gradient",
                     "seed " + std::to_string(i) + " is " + to_string(seeds[i].type()) +
                         " for a value " + to_string(ys[i].type()) +
                         "; give a seed of the same type",
                     where);
  }
}

/// Implements `vjp`. Calls `recorded(node)` when everything has been recorded for a node.
template <class F>
std::vector<Var> differentiate(std::span<const Var> given_ys, std::span<const Var> given_xs,
                               std::span<const Var> seeds, const Where& where, F recorded) {
  Tape& tape = common_tape(given_ys, "gradient", where);
  if (given_xs.empty()) return {};
  const InUse::Use use(tape.in_use(), tape_use::differentiating, "gradient", &where);
  const std::vector<Var> ys = all_here(tape, given_ys, where);
  const std::vector<Var> xs = all_here(tape, given_xs, where);
  require_differentiable(ys, "a differentiated value", where);
  require_differentiable(xs, "a variable of differentiation", where);
  const std::vector<Var> own_seeds = all_here(tape, seeds, where);
  require_seeds(own_seeds, ys, where);
  require_whole_paths(ys, xs, where);

  NodeId first = tape.node_count() - 1;
  for (const Var& x : xs) first = std::min(first, x.node());
  NodeId last = 0;
  for (const Var& y : ys) last = std::max(last, y.node());

  Adjoints adjoints(tape, tape.first_output(first), tape.value_count());
  for (const Var& x : xs) adjoints.mark_reached(x.id());
  if (first <= last) mark_reached(tape, first, last, adjoints);
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (!adjoints.reached(ys[i].id())) continue;
    const Blame blame(tape, where);
    adjoints.add(ys[i].id(), own_seeds.empty() ? full_like(ys[i], 1, where) : own_seeds[i]);
  }
  recorded(last);
  Workbench bench;
  for (NodeId node = last + 1; node-- > first;) {
    if (!tape.is_blocked(node) && tape.operation(node).vjp != nullptr) {
      pull_back(tape, node, adjoints, bench, xs);
    }
    adjoints.leave(node);
    recorded(node);
  }

  std::vector<Var> gradients;
  for (const Var& x : xs) {
    const Var sum = adjoints.sum(x.id());
    gradients.push_back(sum.defined() ? sum : full_like(x, 0, where));
    recorded(x.node());
  }
  return gradients;
}

}  // namespace

std::vector<Var> vjp(std::span<const Var> ys, std::span<const Var> xs, std::span<const Var> seeds,
                     Where where) {
  return differentiate(ys, xs, seeds, where, [](NodeId) {});
}

std::vector<Var> vjp_with_origins(std::span<const Var> ys, std::span<const Var> xs,
                                  std::vector<NodeId>& origins, Where where) {
  const Tape& tape = common_tape(ys, "gradient", where);
  const NodeId first = tape.node_count();
  return differentiate(ys, xs, {}, where,
                       [&](NodeId node) { origins.resize(tape.node_count() - first, node); });
}

std::vector<Var> gradient(const Var& y, std::span<const Var> xs, Where where) {
  return vjp({&y, 1}, xs, {}, where);
}

std::vector<Var> gradient(const Var& y, std::initializer_list<Var> xs, Where where) {
  return gradient(y, std::span<const Var>(xs.begin(), xs.size()), where);
}

Var gradient(const Var& y, const Var& x, Where where) {
  return gradient(y, std::span<const Var>(&x, 1), where)[0];
}

}  // namespace palimpsest
