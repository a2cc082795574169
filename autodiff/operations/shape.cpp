#include "autodiff/operations/shape.h"

#include <algorithm>
#include <utility>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/scattered.h"
#include "autodiff/operations/strided.h"

namespace palimpsest {
namespace {

/// Fills the output from the input, which is read with the given strides.
void copy_to_output(const KernelCall& call, const Strides& strides) {
  const Operand& y = call.output();
  copy_strided({y.shape(), strides, strides_of(y.shape())}, call.input().data, y.data,
               size_of(y.dtype()));
}

const Operation reshape_operation{
    .name = "reshape",
    .formula = "y = x, x̄ = ȳ in x's shape",
    .summary = "the elements in another shape",
    .vjp = [](const Pullback& p) { p.set(0, reshape(p.adjoint(), p.input().shape())); },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
    .view = true,
};

Access permuted_access(const Shape& from, const Axes& axes) {
  const Strides dense = strides_of(from);
  Access access;
  for (std::size_t i = 0; i < axes.size(); ++i) access.strides[i] = dense[at(axes[i])];
  return access;
}

const Operation broadcast_to_operation{
    .name = "broadcast_to",
    .formula = "y = x repeated, x̄ = ȳ summed over the repetitions",
    .summary = "repetition along axes of size 1",
    .compute =
        [](const KernelCall& call) {
          const Access access = broadcast_access(call.input().shape(), call.output().shape());
          copy_to_output(call, access.strides);
        },
    .vjp = [](const Pullback& p) { p.set(0, sum_to(p.adjoint(), p.input().shape())); },
    .access =
        [](const NodeView& node) {
          return broadcast_access(node.input(0).shape, node.output().shape);
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

const Operation permute_operation{
    .name = "permute",
    .formula = "y = x with axis aᵢ as axis i, x̄ = ȳ with the axes put back",
    .summary = "axes in another order",
    .compute =
        [](const KernelCall& call) {
          const Axes& axes = call.attributes.as<Axes>();
          copy_to_output(call, permuted_access(call.input().shape(), axes).strides);
        },
    .vjp =
        [](const Pullback& p) {
          const Axes axes = p.attributes().as<Axes>();
          std::vector<int> back(axes.size());
          for (std::size_t i = 0; i < axes.size(); ++i) back[at(axes[i])] = static_cast<int>(i);
          p.set(0, permute(p.adjoint(), back));
        },
    .access =
        [](const NodeView& node) {
          return permuted_access(node.input(0).shape, node.attributes().as<Axes>());
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

/// Repeats each block of `block` elements `count` times.
Var repeat_blocks(const Var& x, std::int64_t block, std::int64_t count, const Shape& result,
                  const Where& where) {
  const std::int64_t blocks = block == 0 ? 0 : x.shape().elements() / block;
  const Var parts = reshape(x, Shape{blocks, 1, block}, where);
  return reshape(broadcast_to(parts, Shape{blocks, count, block}, where), result, where);
}

void require_count(std::int64_t count, const char* operation, const Where& where) {
  if (count >= 0) return;
  throw ArgumentError(operation,
                      "cannot repeat " + std::to_string(count) + " times; give 0 or more", where);
}

}  // namespace

Access broadcast_access(const Shape& from, const Shape& to) {
  const Strides dense = strides_of(from);
  const int extra = to.rank() - from.rank();
  Access access;
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1) access.strides[at(axis + extra)] = dense[at(axis)];
  }
  return access;
}

std::span<const Operation* const> shape_operations() {
  static const Operation* const family[] = {&reshape_operation, &broadcast_to_operation,
                                            &permute_operation};
  return family;
}

Var before_reshape(const Var& x) {
  Tape& tape = x.tape();
  if (&tape.operation(x.node()) != &reshape_operation) return Var();
  return Var(tape, tape.inputs(x.node())[0]);
}

Var reshape(const Var& x, const Shape& shape, Where where) {
  require_value(x, "reshape", where);
  const Shape from = x.shape();
  if (from == shape) return x;
  if (from.elements() != shape.elements()) {
    throw ShapeError("reshape",
                     "shape " + to_string(from) + " has " + std::to_string(from.elements()) +
                         " elements, but " + to_string(shape) + " has " +
                         std::to_string(shape.elements()) + "; give sizes whose product is " +
                         std::to_string(from.elements()),
                     where);
  }
  const ValueType type{shape, x.dtype()};
  return x.tape().record(reshape_operation, {&x, 1}, {&type, 1}, {}, where);
}

Var reshape(const Var& x, std::initializer_list<std::int64_t> sizes, Where where) {
  require_value(x, "reshape", where);
  const Shape shape = [&] {
    try {
      return infer_shape({sizes.begin(), sizes.size()}, x.shape().elements());
    } catch (const ShapeError& error) {
      throw ShapeError(std::string(error.what()) + " (recorded at " + to_string(where) + ")");
    }
  }();
  return reshape(x, shape, where);
}

Var flatten(const Var& x, int first, int last, Where where) {
  require_value(x, "flatten", where);
  const Shape shape = x.shape();
  if (shape.rank() == 0) return reshape(x, Shape{1}, where);
  const int begin = shape.wrap(first, "flatten", where);
  const int end = shape.wrap(last, "flatten", where);
  if (begin > end) {
    throw ShapeError("flatten",
                     "axis " + std::to_string(first) + " comes after axis " + std::to_string(last) +
                         " of shape " + to_string(shape) + "; swap them",
                     where);
  }
  Shape result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > begin && axis <= end)
      result[begin] *= shape[axis];
    else
      result.push_back(shape[axis]);
  }
  return reshape(x, result, where);
}

Var squeeze(const Var& x, const Axes& axes, Where where) {
  require_value(x, "squeeze", where);
  const Shape shape = x.shape();
  std::array<bool, max_rank> named{};
  for (const int axis : axes) {
    const int wrapped = shape.wrap(axis, "squeeze", where);
    if (shape[wrapped] != 1) {
      throw ShapeError("squeeze",
                       "axis " + std::to_string(axis) + " of shape " + to_string(shape) +
                           " has size " + std::to_string(shape[wrapped]) + ", not 1; leave it out",
                       where);
    }
    named[at(wrapped)] = true;
  }
  Shape result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool goes = axes.empty() ? shape[axis] == 1 : named[at(axis)];
    if (!goes) result.push_back(shape[axis]);
  }
  return reshape(x, result, where);
}

Var unsqueeze(const Var& x, int axis, Where where) {
  require_value(x, "unsqueeze", where);
  Shape shape = x.shape();
  require_axes(shape.rank() + 1, "unsqueeze", where);
  Shape longer = shape;
  longer.push_back(1);
  shape.insert(longer.wrap(axis, "unsqueeze", where), 1);
  return reshape(x, shape, where);
}

Var broadcast_to(const Var& x, const Shape& shape, Where where) {
  require_value(x, "broadcast_to", where);
  const Shape from = x.shape();
  if (from == shape) return x;
  if (broadcast(from, shape, "broadcast_to", where) != shape) {
    throw ShapeError("broadcast_to",
                     "shape " + to_string(from) + " does not broadcast to " + to_string(shape) +
                         "; aligned at the last axis, each size must be 1 or that of the result",
                     where);
  }
  const ValueType type{shape, x.dtype()};
  return x.tape().record(broadcast_to_operation, {&x, 1}, {&type, 1}, {}, where);
}

Var permute(const Var& x, const Axes& axes, Where where) {
  require_value(x, "permute", where);
  const Shape shape = x.shape();
  Axes order;
  std::array<bool, max_rank> named{};
  ValueType type{{}, x.dtype()};
  for (const int axis : axes) {
    order.push_back(shape.wrap(axis, "permute", where));
    type.shape.push_back(shape[order.back()]);
    if (std::exchange(named[at(order.back())], true)) {
      throw ShapeError("permute", "axis " + std::to_string(axis) + " is named twice; name it once",
                       where);
    }
  }
  if (type.shape.rank() != shape.rank()) {
    throw ShapeError("permute",
                     std::to_string(axes.size()) + " axes are given for shape " + to_string(shape) +
                         "; give all " + std::to_string(shape.rank()),
                     where);
  }
  if (std::is_sorted(order.begin(), order.end())) return x;
  return x.tape().record(permute_operation, {&x, 1}, {&type, 1}, std::move(order), where);
}

Var transpose(const Var& x, int a, int b, Where where) {
  require_value(x, "transpose", where);
  const Shape shape = x.shape();
  Axes axes;
  for (int axis = 0; axis < shape.rank(); ++axis) axes.push_back(axis);
  std::swap(axes[at(shape.wrap(a, "transpose", where))],
            axes[at(shape.wrap(b, "transpose", where))]);
  return permute(x, axes, where);
}

Var tile(const Var& x, const std::vector<std::int64_t>& counts, Where where) {
  require_value(x, "tile", where);
  const int rank = x.rank();
  if (counts.size() != at(rank)) {
    throw ShapeError("tile",
                     std::to_string(counts.size()) + " counts for shape " + to_string(x.shape()) +
                         "; give one count per axis",
                     where);
  }
  Var result = x;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const std::int64_t count = counts[at(axis)];
    require_count(count, "tile", where);
    if (count == 1) continue;
    Shape shape = result.shape();
    const std::int64_t block = strides_of(shape)[at(axis)] * shape[axis];
    shape[axis] = multiply_sizes(shape[axis], count);
    result = repeat_blocks(result, block, count, shape, where);
  }
  return result;
}

Var repeat(const Var& x, std::int64_t count, int axis, Where where) {
  require_value(x, "repeat", where);
  Shape shape = x.shape();
  const int wrapped = shape.wrap(axis, "repeat", where);
  require_count(count, "repeat", where);
  const std::int64_t block = strides_of(shape)[at(wrapped)];
  shape[wrapped] = multiply_sizes(shape[wrapped], count);
  return repeat_blocks(x, block, count, shape, where);
}

}  // namespace palimpsest
