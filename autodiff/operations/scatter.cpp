#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/places.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/strided.h"

namespace palimpsest {
namespace {

constexpr auto overwrite = [](auto& to, const auto& from) { to = from; };

void compute_scatter(const KernelCall& call) {
  const auto& [axis, where] = call.attributes.as<IndexAttributes>();
  const LineShape to(call.output().shape(), axis);
  const std::int64_t count = call.input(2).shape()[axis];
  with_places(call.input(1), to.size, "scatter", where, [&](const auto* places) {
    copy_first(call);
    visit_size(call.output().dtype(), [&]<class T>(T) {
      write_rows(
          to, count, call.input(2).as<T>(), call.output().as<T>(),
          [&](std::int64_t row, std::int64_t i) { return places[row * to.inner + i]; }, overwrite);
    });
  });
}

void compute_index_copy(const KernelCall& call) {
  const auto& [axis, where] = call.attributes.as<IndexAttributes>();
  const LineShape to(call.output().shape(), axis);
  const std::int64_t count = call.input(1).elements();
  with_places(call.input(1), to.size, "index_copy", where, [&](const auto* places) {
    copy_first(call);
    visit_size(call.output().dtype(), [&]<class T>(T) {
      write_rows(
          to, count, call.input(2).as<T>(), call.output().as<T>(),
          [&](std::int64_t row, std::int64_t) { return places[row % count]; }, overwrite);
    });
  });
}

/// x, the positions, and the source are read, and the result is written.
Cost scatter_cost(const NodeView& node) {
  return {0, bytes_moved(node) + static_cast<double>(node.input(2).bytes())};
}

/// Numbers 0, 1, 2 … along the axes of `shape`, in row-major order.
Var numbered(const Var& like, const Shape& shape, const Where& where) {
  const Var ones = full(like.tape(), {shape.elements()}, 1, DType::i64, where);
  return reshape(cumsum(ones, 0, false, where) - 1.0, shape, where);
}

/// For each element of `index`, whether no later one writes to the same position.
Var is_last_write(const Var& index, int axis, std::int64_t size, const Where& where) {
  const Var numbers = numbered(index, index.shape(), where);
  Shape shape = index.shape();
  shape[axis] = size;
  const Var writer =
      scatter(full(index.tape(), shape, -1, DType::i64, where), axis, index, numbers, where);
  return equal(gather(writer, axis, index, where), numbers);
}

void pull_back_scatter(const Pullback& p) {
  const int axis = p.attributes().as<IndexAttributes>().axis;
  const Var index = p.input(1);
  const Var dy = p.adjoint();
  if (p.wants(0)) p.set(0, scatter(dy, axis, index, full_like(p.input(2), 0), p.where()));
  if (p.wants(2)) {
    const Var is_read = is_last_write(index, axis, dy.shape()[axis], p.where());
    p.set(2, where(is_read, gather(dy, axis, index, p.where()), 0));
  }
}

void pull_back_index_copy(const Pullback& p) {
  const int axis = p.attributes().as<IndexAttributes>().axis;
  const Var index = p.input(1);
  const Var dy = p.adjoint();
  if (p.wants(0)) p.set(0, index_copy(dy, axis, index, full_like(p.input(2), 0), p.where()));
  if (p.wants(2)) {
    const Var flat = reshape(index, {index.shape().elements()});
    Shape beside = index.shape();
    for (int after = axis + 1; after < dy.rank(); ++after) beside.push_back(1);
    const Var is_read = reshape(is_last_write(flat, 0, dy.shape()[axis], p.where()), beside);
    p.set(2, where(is_read, index_select(dy, axis, index, p.where()), 0));
  }
}

const Operation scatter_operation{
    .name = "scatter",
    .formula = "y = x, but sᵢ at indexᵢ; x̄ = ȳ, but 0 at indexᵢ; s̄ᵢ = ȳ at indexᵢ",
    .summary = "elements written at given positions along an axis; the last one written counts",
    .compute = compute_scatter,
    .vjp = pull_back_scatter,
    .cost = scatter_cost,
    .in_place = [](const NodeView&, std::size_t) { return 0; },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

const Operation index_copy_operation{
    .name = "index_copy",
    .formula = "y = x, but slice sᵢ at indexᵢ; x̄ = ȳ, but 0 at indexᵢ; s̄ᵢ = slice indexᵢ of ȳ",
    .summary = "slices written at given positions along an axis; the last one written counts",
    .compute = compute_index_copy,
    .vjp = pull_back_index_copy,
    .cost = scatter_cost,
    .in_place = [](const NodeView&, std::size_t) { return 0; },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

struct RavelAttributes {
  Shape sizes;  ///< of the axes that the inputs index
  Where where;

  bool operator==(const RavelAttributes& other) const {
    return sizes == other.sizes && same_line(where, other.where);
  }
};

const Operation ravel_operation{
    .name = "ravel_multi_index",
    .formula = "y = Σ over axes a of indexₐ·(product of the sizes after a)",
    .summary = "row-major positions of elements given by one index per axis",
    .compute =
        [](const KernelCall& call) {
          const auto& [sizes, where] = call.attributes.as<RavelAttributes>();
          auto* const y = call.output().as<std::int64_t>();
          const std::int64_t n = call.output().elements();
          std::fill_n(y, n, 0);
          for (std::size_t axis = 0; axis < call.inputs.size(); ++axis) {
            const std::int64_t size = sizes[static_cast<int>(axis)];
            with_places(call.input(axis), size, "ravel_multi_index", where,
                        [&](const auto* places) {
                          for (std::int64_t i = 0; i < n; ++i) y[i] = y[i] * size + places[i];
                        });
          }
        },
    .half = HalfSupport::native,
};

Var record_scatter(const Operation& operation, const Var& x, const Var& index, const Var& source,
                   int axis, const Where& where) {
  const Var inputs[] = {x, widened(index, where), source};
  const ValueType type = x.type();
  return common_tape(inputs, operation.name, where)
      .record(operation, inputs, {&type, 1}, IndexAttributes{axis, where}, where);
}

/// How x is indexed: as rows (product of the indexed sizes, the other sizes).
struct Selected {
  Var rows;
  Var places;       ///< row-major positions of the rows
  Shape shape;      ///< of the result
  Axes order;       ///< of x's axes, with the indexed ones first
  int result_axis;  ///< position of the index's axes in the result
};

/// The indices, with each bool replaced by the positions of its true elements.
std::vector<Var> as_places(const Var& x, std::span<const Var> indices, const char* operation,
                           const Where& where) {
  std::vector<Var> places;
  for (const Var& index : indices) {
    if (!index.defined()) {
      places.emplace_back();
      continue;
    }
    if (index.dtype() != DType::boolean) {
      require_places(index, operation, where);
      places.push_back(widened(index, where));
      continue;
    }
    const int first = static_cast<int>(places.size());
    for (int axis = 0; axis < index.rank(); ++axis) {
      if (first + axis < x.rank() && index.shape()[axis] == x.shape()[first + axis]) continue;
      throw ShapeError(operation,
                       "a condition of shape " + to_string(index.shape()) + " at axis " +
                           std::to_string(first) + " of " + to_string(x.shape()) +
                           "; give it the sizes of the axes that it selects from",
                       where);
    }
    const Var found = nonzero(index, {}, where);
    for (int axis = 0; axis < index.rank(); ++axis) {
      places.push_back(select(found, 1, axis, where));
    }
  }
  return places;
}

Selected select_by(const Var& x, std::span<const Var> indices, const char* operation,
                   const Where& where) {
  require_value(x, operation, where);
  const std::vector<Var> places = as_places(x, indices, operation, where);
  const Shape shape = x.shape();
  Selected selected;
  std::vector<Var> given;
  Axes others;
  Shape sizes, beside, wide;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_indexed = at(axis) < places.size() && places[at(axis)].defined();
    if (!is_indexed) {
      others.push_back(axis);
      beside.push_back(shape[axis]);
      continue;
    }
    selected.order.push_back(axis);
    given.push_back(places[at(axis)]);
    sizes.push_back(shape[axis]);
    wide = broadcast(wide, given.back().shape(), operation, where);
  }
  if (given.empty() || places.size() > at(shape.rank())) {
    throw ShapeError(operation,
                     std::to_string(given.size()) + " of " + std::to_string(places.size()) +
                         " axes are indexed, for shape " + to_string(shape) +
                         "; give at least one index, and at most one for each axis",
                     where);
  }
  const int first = selected.order.front();
  const bool adjacent = selected.order.back() - first + 1 == static_cast<int>(given.size());
  selected.result_axis = adjacent ? first : 0;
  selected.order.insert(selected.order.end(), others.begin(), others.end());
  selected.places = ravel_multi_index(given, sizes, where);
  selected.rows = reshape(permute(x, selected.order, where),
                          replaced(beside, 0, 0, Shape{sizes.elements()}), where);
  require_axes(beside.rank() + wide.rank(), operation, where);
  selected.shape = replaced(beside, selected.result_axis, 0, wide);
  return selected;
}

/// The permutation that moves `count` axes from `from` to the front.
Axes to_front(int rank, int from, int count) {
  Axes axes;
  for (int i = 0; i < count; ++i) axes.push_back(from + i);
  for (int i = 0; i < rank; ++i) {
    if (i < from || i >= from + count) axes.push_back(i);
  }
  return axes;
}

Axes inverse_of(const Axes& order) {
  Axes inverse(std::vector<int>(order.size()));
  for (std::size_t i = 0; i < order.size(); ++i) inverse[at(order[i])] = static_cast<int>(i);
  return inverse;
}

}  // namespace

std::span<const Operation* const> scatter_operations() {
  static const Operation* const family[] = {&scatter_operation, &index_copy_operation,
                                            &ravel_operation};
  return family;
}

void require_source(const Var& source, const Shape& shape, const Var& x, const char* operation,
                    const Where& where) {
  require_value(source, operation, where);
  if (source.dtype() != x.dtype()) {
    throw DTypeError(operation,
                     "the source is " + to_string(source.type()) + " for " + to_string(x.type()) +
                         "; cast it to the same dtype",
                     where);
  }
  if (source.shape() == shape) return;
  throw ShapeError(operation,
                   "the source has shape " + to_string(source.shape()) + " where shape " +
                       to_string(shape) + " is written; make them equal",
                   where);
}

int require_scatter(const Var& x, int axis, const Var& index, const Var& source,
                    const char* operation, const Where& where) {
  require_places(index, operation, where);
  require_value(x, operation, where);
  const int wrapped = x.shape().wrap(axis, operation, where);
  Shape expected = x.shape();
  const Shape shape = index.shape();
  if (shape.rank() == expected.rank()) expected[wrapped] = shape[wrapped];
  if (shape != expected) {
    throw ShapeError(operation,
                     "the index has shape " + to_string(shape) + " for shape " +
                         to_string(x.shape()) + "; make them equal except along axis " +
                         std::to_string(axis),
                     where);
  }
  require_source(source, shape, x, operation, where);
  return wrapped;
}

Var scatter(const Var& x, int axis, const Var& index, const Var& source, Where where) {
  const int wrapped = require_scatter(x, axis, index, source, "scatter", where);
  return record_scatter(scatter_operation, x, index, source, wrapped, where);
}

Var scatter(const Var& x, int axis, const Var& index, double value, Where where) {
  require_places(index, "scatter", where);
  const Var number = number_like(x, value, "scatter", where);
  return scatter(x, axis, index, broadcast_to(cast(number, x.dtype(), where), index.shape(), where),
                 where);
}

int require_index_source(const Var& x, int axis, const Var& index, const Var& source,
                         const char* operation, const Where& where) {
  require_places(index, operation, where);
  require_value(x, operation, where);
  const int wrapped = x.shape().wrap(axis, operation, where);
  require_axes(x.rank() - 1 + index.rank(), operation, where);
  require_source(source, replaced(x.shape(), wrapped, 1, index.shape()), x, operation, where);
  return wrapped;
}

Var index_copy(const Var& x, int axis, const Var& index, const Var& source, Where where) {
  const int wrapped = require_index_source(x, axis, index, source, "index_copy", where);
  return record_scatter(index_copy_operation, x, index, source, wrapped, where);
}

Var ravel_multi_index(std::span<const Var> indices, const Shape& sizes, Where where) {
  Tape& tape = common_tape(indices, "ravel_multi_index", where);
  if (indices.size() != at(sizes.rank())) {
    throw ShapeError("ravel_multi_index",
                     std::to_string(indices.size()) + " indices for shape " + to_string(sizes) +
                         "; give one for each axis",
                     where);
  }
  Shape shape;
  for (const Var& index : indices) {
    require_places(index, "ravel_multi_index", where);
    shape = broadcast(shape, index.shape(), "ravel_multi_index", where);
  }
  std::vector<Var> wide;
  for (const Var& index : indices) {
    const Var place = widened(index, where);
    wide.push_back(index.shape() == shape ? place : broadcast_to(place, shape, where));
  }
  const ValueType type{shape, DType::i64};
  return tape.record(ravel_operation, wide, {&type, 1}, RavelAttributes{sizes, where}, where);
}

Var index(const Var& x, std::span<const Var> indices, Where where) {
  const Selected selected = select_by(x, indices, "index", where);
  const Var y = index_select(selected.rows, 0, selected.places, where);
  if (selected.result_axis == 0) return y;
  const int count = selected.places.rank();
  return permute(y, inverse_of(to_front(y.rank(), selected.result_axis, count)), where);
}

Var index(const Var& x, std::initializer_list<Var> indices, Where where) {
  return index(x, std::span(indices.begin(), indices.size()), where);
}

Var index_put(const Var& x, std::span<const Var> indices, const Var& values, bool accumulate,
              Where where) {
  const Selected selected = select_by(x, indices, "index_put", where);
  require_value(values, "index_put", where);
  if (values.dtype() != x.dtype()) {
    throw DTypeError("index_put",
                     "the values are " + to_string(values.type()) + " for " + to_string(x.type()) +
                         "; cast them to the same dtype",
                     where);
  }
  const Var wide =
      values.shape() == selected.shape ? values : broadcast_to(values, selected.shape, where);
  const int count = selected.places.rank();
  const Var source = selected.result_axis == 0
                         ? wide
                         : permute(wide, to_front(wide.rank(), selected.result_axis, count), where);
  const Var rows = accumulate ? index_add(selected.rows, 0, selected.places, source, where)
                              : index_copy(selected.rows, 0, selected.places, source, where);
  Shape arranged;
  for (const int axis : selected.order) arranged.push_back(x.shape()[axis]);
  return permute(reshape(rows, arranged, where), inverse_of(selected.order), where);
}

Var index_put(const Var& x, std::initializer_list<Var> indices, const Var& values, bool accumulate,
              Where where) {
  return index_put(x, std::span(indices.begin(), indices.size()), values, accumulate, where);
}

}  // namespace palimpsest
