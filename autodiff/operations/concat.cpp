#include <algorithm>
#include <set>
#include <utility>

#include "autodiff/gradient.h"
#include "autodiff/operations/attributes.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/placed.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/strided.h"

namespace palimpsest {
namespace {

std::byte* part_of(const Operand& whole, const PartAttributes& attributes, std::size_t i) {
  const std::int64_t stride = strides_of(whole.shape())[static_cast<std::size_t>(attributes.axis)];
  return whole.data + attributes.begins[i] * stride * size_of(whole.dtype());
}

Var record_concat(std::span<const Var> parts, PartAttributes attributes, const ValueType& type,
                  const Where& where);

/// The stretches if the parts are contiguous: all axes before `axis` have size 1.
std::vector<Stretch> concat_stretches(const NodeView& node) {
  const auto& attributes = node.attributes().as<PartAttributes>();
  const Shape shape = node.output().shape;
  for (int axis = 0; axis < attributes.axis; ++axis) {
    if (shape[axis] != 1) return {};
  }
  const std::int64_t row = strides_of(shape)[static_cast<std::size_t>(attributes.axis)];
  std::vector<Stretch> stretches;
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const std::int64_t begin = attributes.begins[i] * row;
    const std::int64_t end = begin + node.input(i).shape.elements();
    stretches.push_back({filled, begin, -1});
    stretches.push_back({begin, end, static_cast<int>(i)});
    filled = end;
  }
  stretches.push_back({filled, shape.elements(), -1});
  return stretches;
}

const Operation concat_operation{
    .name = "concat",
    .formula = "y = parts xᵢ concatenated, x̄ᵢ = part i of ȳ",
    .summary = "concatenation of tensors along an axis",
    .compute =
        [](const KernelCall& call) {
          const auto& attributes = call.attributes.as<PartAttributes>();
          const Operand& y = call.output();
          const Strides strides = strides_of(y.shape());
          const auto fill_gap = [&](std::int64_t begin, std::int64_t end) {
            Shape gap = y.shape();
            gap[attributes.axis] = end - begin;
            const auto axis = static_cast<std::size_t>(attributes.axis);
            if (end > begin) fill_box(y, begin * strides[axis], gap, 0);
          };
          std::int64_t filled = 0;
          for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            const Operand& x = call.input(i);
            fill_gap(filled, attributes.begins[i]);
            copy_strided({x.shape(), strides_of(x.shape()), strides}, x.data,
                         part_of(y, attributes, i), size_of(y.dtype()));
            filled = attributes.begins[i] + x.shape()[attributes.axis];
          }
          fill_gap(filled, y.shape()[attributes.axis]);
        },
    .vjp =
        [](const Pullback& p) {
          const PartAttributes attributes = p.attributes().as<PartAttributes>();
          for (std::size_t i = 0; i < p.input_count(); ++i) {
            if (!p.wants(i)) continue;
            const std::int64_t begin = attributes.begins[i];
            const std::int64_t size = p.input(i).shape()[attributes.axis];
            p.set(i, slice(p.adjoint(), attributes.axis, {begin, begin + size}));
          }
        },
    .stretches = concat_stretches,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

const Operation split_operation{
    .name = "split",
    .formula = "yᵢ = part i of x, x̄ = the ȳᵢ concatenated",
    .summary = "parts of a tensor along an axis",
    .compute =
        [](const KernelCall& call) {
          const auto& attributes = call.attributes.as<PartAttributes>();
          const Operand& x = call.input();
          for (std::size_t i = 0; i < call.outputs.size(); ++i) {
            const Operand& y = call.output(i);
            copy_strided({y.shape(), strides_of(x.shape()), strides_of(y.shape())},
                         part_of(x, attributes, i), y.data, size_of(y.dtype()));
          }
        },
    .vjp =
        [](const Pullback& p) {
          const PartAttributes attributes = p.attributes().as<PartAttributes>();
          std::vector<Var> parts;
          PartAttributes present{attributes.axis, {}};
          for (std::size_t i = 0; i < p.output_count(); ++i) {
            if (!p.has_adjoint(i)) continue;
            parts.push_back(p.adjoint(i));
            present.begins.push_back(attributes.begins[i]);
          }
          p.set(0, record_concat(parts, std::move(present), p.input().type(), p.where()));
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

Var record_concat(std::span<const Var> parts, PartAttributes attributes, const ValueType& type,
                  const Where& where) {
  return parts[0].tape().record(concat_operation, parts, {&type, 1}, std::move(attributes), where);
}

void require_parts(std::span<const Var> parts, const char* operation, const Where& where) {
  if (parts.empty())
    throw ArgumentError(operation, "there are no tensors; give at least one", where);
}

}  // namespace

std::span<const Operation* const> concat_operations() {
  static const Operation* const family[] = {&concat_operation, &split_operation};
  return family;
}

std::vector<Var> put_together(const std::vector<Var>& padded) {
  std::vector<std::pair<Placed, Var>> parts;
  for (const Var& one : padded) parts.emplace_back(*placed_among_zeros(one), one);
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.axis, a.first.begin) < std::pair(b.first.axis, b.first.begin);
  });
  struct Row {
    PartAttributes attributes;
    std::vector<Var> parts;
    Var padded;  // the first part
  };
  std::vector<Row> rows;
  std::set<std::pair<std::int64_t, std::size_t>> ends;  // end along the axis, row
  int axis = -1;
  for (const auto& [part, whole] : parts) {
    if (std::exchange(axis, part.axis) != part.axis) ends.clear();
    if (ends.empty() || ends.begin()->first > part.begin) {
      ends.emplace(0, rows.size());
      rows.push_back({{part.axis, {}}, {}, whole});
    }
    const std::size_t number = ends.extract(ends.begin()).value().second;
    ends.emplace(part.end(), number);
    rows[number].attributes.begins.push_back(part.begin);
    rows[number].parts.push_back(part.part);
  }
  std::vector<Var> together;
  for (Row& row : rows) {
    const Tape& tape = row.padded.tape();
    together.push_back(row.parts.size() == 1
                           ? row.padded
                           : record_concat(row.parts, std::move(row.attributes), row.padded.type(),
                                           tape.where(row.padded.node())));
  }
  return together;
}

Var concat(std::span<const Var> parts, int axis, Where where) {
  require_parts(parts, "concat", where);
  common_tape(parts, "concat", where);
  ValueType type = parts[0].type();
  PartAttributes attributes{type.shape.wrap(axis, "concat", where), {}};
  type.shape[attributes.axis] = 0;
  for (const Var& part : parts) {
    Shape shape = part.shape();
    Shape expected = type.shape;
    if (shape.rank() == expected.rank()) expected[attributes.axis] = shape[attributes.axis];
    if (shape != expected) {
      throw ShapeError("concat",
                       "shapes " + to_string(parts[0].shape()) + " and " + to_string(shape) +
                           " differ in axes other than axis " + std::to_string(axis) +
                           "; make them equal except along it",
                       where);
    }
    attributes.begins.push_back(type.shape[attributes.axis]);
    type.shape[attributes.axis] = add_sizes(type.shape[attributes.axis], shape[attributes.axis]);
    type.dtype = promote(type.dtype, part.dtype());
  }
  if (parts.size() == 1) return parts[0];
  std::vector<Var> promoted;
  for (const Var& part : parts) promoted.push_back(cast(part, type.dtype, where));
  return record_concat(promoted, std::move(attributes), type, where);
}

Var concat(std::initializer_list<Var> parts, int axis, Where where) {
  return concat(std::span(parts.begin(), parts.size()), axis, where);
}

Var stack(std::span<const Var> parts, int axis, Where where) {
  require_parts(parts, "stack", where);
  common_tape(parts, "stack", where);
  std::vector<Var> wider;
  for (const Var& part : parts) {
    if (part.shape() != parts[0].shape()) {
      throw ShapeError("stack",
                       "shapes " + to_string(parts[0].shape()) + " and " + to_string(part.shape()) +
                           " differ; give tensors of equal shape",
                       where);
    }
    wider.push_back(unsqueeze(part, axis, where));
  }
  return concat(wider, axis, where);
}

Var stack(std::initializer_list<Var> parts, int axis, Where where) {
  return stack(std::span(parts.begin(), parts.size()), axis, where);
}

std::vector<Var> split(const Var& x, const std::vector<std::int64_t>& sizes, int axis,
                       Where where) {
  require_value(x, "split", where);
  const Shape shape = x.shape();
  PartAttributes attributes{shape.wrap(axis, "split", where), {}};
  std::vector<ValueType> types;
  std::int64_t covered = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0) {
      throw ShapeError(
          "split", "a part cannot have size " + std::to_string(size) + "; give 0 or more", where);
    }
    attributes.begins.push_back(covered);
    covered = add_sizes(covered, size);
    types.push_back({shape, x.dtype()});
    types.back().shape[attributes.axis] = size;
  }
  if (covered != shape[attributes.axis] || sizes.empty()) {
    throw ShapeError("split",
                     "parts of " + std::to_string(covered) +
                         " elements in total do not cover axis " + std::to_string(axis) +
                         " of shape " + to_string(shape) + "; give sizes whose sum is " +
                         std::to_string(shape[attributes.axis]),
                     where);
  }
  if (sizes.size() == 1) return {x};
  const Var first = x.tape().record(split_operation, {&x, 1}, types, std::move(attributes), where);
  std::vector<Var> parts;
  for (std::uint32_t i = 0; i < types.size(); ++i) parts.push_back(first.output(i));
  return parts;
}

std::vector<Var> chunk(const Var& x, std::int64_t count, int axis, Where where) {
  require_value(x, "chunk", where);
  const std::int64_t n = x.shape()[x.shape().wrap(axis, "chunk", where)];
  if (count < 1) {
    throw ArgumentError("chunk",
                        "cannot make " + std::to_string(count) + " parts of axis " +
                            std::to_string(axis) + " of shape " + to_string(x.shape()) +
                            "; give 1 or more",
                        where);
  }
  const std::int64_t size = n / count + (n % count != 0);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(n == 0 ? count : n / size), size);
  if (n % std::max<std::int64_t>(size, 1) != 0) sizes.push_back(n % size);
  return split(x, sizes, axis, where);
}

}  // namespace palimpsest
