#include "autodiff/operations/index.h"

#include <algorithm>
#include <cstring>

#include "autodiff/gradient.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/lines.h"
#include "autodiff/operations/places.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/scattered.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

void compute_gather(const KernelCall& call) {
  const auto& [axis, where] = call.attributes.as<IndexAttributes>();
  const LineShape from(call.input(0).shape(), axis);
  const Operand& y = call.output();
  const std::int64_t count = y.shape()[axis];
  with_places(call.input(1), from.size, "gather", where, [&](const auto* places) {
    visit_size(y.dtype(), [&]<class T>(T) {
      const T* x = call.input(0).as<T>();
      T* to = y.as<T>();
      const double cost = 4 * static_cast<double>(from.inner);
      parallel_chunks(
          from.outer * count, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row) {
              const T* block = x + row / count * from.size * from.inner;
              for (std::int64_t i = 0; i < from.inner; ++i) {
                to[row * from.inner + i] = block[places[row * from.inner + i] * from.inner + i];
              }
            }
          });
    });
  });
}

void compute_index_select(const KernelCall& call) {
  const auto& [axis, where] = call.attributes.as<IndexAttributes>();
  const LineShape from(call.input(0).shape(), axis);
  const Operand& y = call.output();
  const std::int64_t count = call.input(1).elements();
  with_places(call.input(1), from.size, "index_select", where, [&](const auto* places) {
    visit_size(y.dtype(), [&]<class T>(T) {
      const T* x = call.input(0).as<T>();
      T* to = y.as<T>();
      const double cost = static_cast<double>(from.inner) + 8;
      parallel_chunks(from.outer * count, grain_for(cost),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t row = begin; row < end; ++row) {
                          const T* block = x + row / count * from.size * from.inner;
                          std::copy_n(block + places[row % count] * from.inner, from.inner,
                                      to + row * from.inner);
                        }
                      });
    });
  });
}

/// Adds rows of x, (outer, count, inner), to zeros at the positions `place_of(row, column)`.
template <class T, class Place>
void add_rows(const LineShape& to, std::int64_t count, const T* x, T* y, Place place_of) {
  parallel_chunks(
      to.outer * to.size * to.inner, grain_for(1),
      [&](std::int64_t begin, std::int64_t end) { std::fill(y + begin, y + end, T{}); });
  write_rows(to, count, x, y, place_of,
             [](T& sum, const T& from) { sum = Summing::combine(sum, from); });
}

void compute_scatter_add(const KernelCall& call) {
  const auto& [axis, where] = call.attributes.as<IndexAttributes>();
  const LineShape to(call.output().shape(), axis);
  const std::int64_t count = call.input(0).shape()[axis];
  with_places(call.input(1), to.size, "scatter_add", where, [&](const auto* places) {
    visit_numeric(call.output().dtype(), [&]<class T>(T) {
      add_rows(to, count, call.input(0).as<T>(), call.output().as<T>(),
               [&](std::int64_t row, std::int64_t i) { return places[row * to.inner + i]; });
    });
  });
}

void compute_index_add(const KernelCall& call) {
  const auto& [axis, where] = call.attributes.as<IndexAttributes>();
  const LineShape to(call.output().shape(), axis);
  const std::int64_t count = call.input(1).elements();
  with_places(call.input(1), to.size, "index_add", where, [&](const auto* places) {
    visit_numeric(call.output().dtype(), [&]<class T>(T) {
      add_rows(to, count, call.input(0).as<T>(), call.output().as<T>(),
               [&](std::int64_t row, std::int64_t) { return places[row % count]; });
    });
  });
}

void compute_one_hot(const KernelCall& call) {
  const auto& [axis, where] = call.attributes.as<IndexAttributes>();
  const Operand& y = call.output();
  const std::int64_t classes = y.shape()[axis];
  with_places(call.input(), classes, "one_hot", where, [&](const auto* places) {
    std::uint64_t one = 0;
    visit(y.dtype(), [&]<class T>(T) {
      const T number = convert_element<T>(1.0);
      std::memcpy(&one, &number, sizeof(T));
    });
    visit_size(y.dtype(), [&]<class T>(T) {
      T* to = y.as<T>();
      T number;
      std::memcpy(&number, &one, sizeof(T));
      parallel_chunks(call.input().elements(), grain_for(static_cast<double>(classes)),
                      [&](std::int64_t begin, std::int64_t end) {
                        std::fill(to + begin * classes, to + end * classes, T{});
                        for (std::int64_t i = begin; i < end; ++i) {
                          to[i * classes + places[i]] = number;
                        }
                      });
    });
  });
}

/// Data moved: the elements read, the positions and the result.
Cost moving_cost(const NodeView& node) {
  return {0, 2 * static_cast<double>(node.output().bytes()) +
                 static_cast<double>(node.input(1).bytes())};
}

int axis_of(const Pullback& p) { return p.attributes().as<IndexAttributes>().axis; }

const Operation gather_operation{
    .name = "gather",
    .formula = "yᵢ = x at indexᵢ, x̄ₖ = Σ over indexᵢ = k of ȳᵢ",
    .summary = "elements at given positions along an axis",
    .compute = compute_gather,
    .vjp =
        [](const Pullback& p) {
          const int axis = axis_of(p);
          p.set(0, scatter_add(p.adjoint(), axis, p.input(1), p.input(0).shape()[axis], p.where()));
        },
    .cost = moving_cost,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

const Operation scatter_add_operation{
    .name = "scatter_add",
    .formula = "yₖ = Σ over indexᵢ = k of xᵢ, x̄ᵢ = ȳ at indexᵢ",
    .summary = "elements added at given positions along an axis",
    .compute = compute_scatter_add,
    .vjp =
        [](const Pullback& p) { p.set(0, gather(p.adjoint(), axis_of(p), p.input(1), p.where())); },
};

const Operation index_select_operation{
    .name = "index_select",
    .formula = "yᵢ = slice indexᵢ of x, x̄ₖ = Σ over indexᵢ = k of ȳᵢ",
    .summary = "slices at given positions along an axis",
    .compute = compute_index_select,
    .vjp =
        [](const Pullback& p) {
          const int axis = axis_of(p);
          p.set(0, index_add(p.adjoint(), axis, p.input(1), p.input(0).shape()[axis], p.where()));
        },
    .cost = moving_cost,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

const Operation index_add_operation{
    .name = "index_add",
    .formula = "yₖ = Σ over indexᵢ = k of slice i of x, x̄ᵢ = slice indexᵢ of ȳ",
    .summary = "slices added at given positions along an axis",
    .compute = compute_index_add,
    .vjp =
        [](const Pullback& p) {
          p.set(0, index_select(p.adjoint(), axis_of(p), p.input(1), p.where()));
        },
};

const Operation one_hot_operation{
    .name = "one_hot",
    .formula = "y = 1 at position x of the last axis, 0 elsewhere",
    .summary = "one-hot vectors of indices",
    .compute = compute_one_hot,
    .half = HalfSupport::native,
};

void require_numbers(const Var& x, const char* operation, const Where& where) {
  require_value(x, operation, where);
  if (x.dtype() != DType::boolean) return;
  throw DTypeError(operation, "takes numbers, not " + to_string(x.type()) + "; cast it first",
                   where);
}

Var record(const Operation& operation, const Var& x, const Var& index, const Shape& shape, int axis,
           const Where& where) {
  const Var inputs[] = {x, widened(index, where)};
  const ValueType type{shape, x.dtype()};
  return x.tape().record(operation, inputs, {&type, 1}, IndexAttributes{axis, where}, where);
}

/// Likewise, for operations that add elements of x.
Var record_sums(const Operation& operation, const Var& x, const Var& index, const Shape& shape,
                int axis, const Where& where) {
  const Var wide = widened(x, where);
  return cast(record(operation, wide, index, shape, axis, where), x.dtype(), where);
}

}  // namespace

std::span<const Operation* const> index_operations() {
  static const Operation* const family[] = {&gather_operation, &scatter_add_operation,
                                            &index_select_operation, &index_add_operation,
                                            &one_hot_operation};
  return family;
}

std::optional<Scattered> scattered_among_zeros(const Var& x, ValueId first) {
  Tape& tape = x.tape();
  Var made = x;
  for (Var before = x; before.defined(); before = before_reshape(made)) {
    made = before;
    if (made.id() < first || tape.is_blocked(made.node())) return {};
  }
  const NodeId node = made.node();
  const bool by_element = &tape.operation(node) == &scatter_add_operation;
  if (!by_element && &tape.operation(node) != &index_add_operation) return {};
  const std::span<const ValueId> inputs = tape.inputs(node);
  const auto& [axis, where] = tape.attributes(node).as<IndexAttributes>();
  return Scattered{Var(tape, inputs[0]), Var(tape, inputs[1]), axis,
                   by_element,           made.shape(),         where};
}

Var gather(const Var& x, int axis, const Var& index, Where where) {
  require_places(index, "gather", where);
  require_value(x, "gather", where);
  const int wrapped = x.shape().wrap(axis, "gather", where);
  Shape expected = x.shape();
  const Shape shape = index.shape();
  if (shape.rank() == expected.rank()) expected[wrapped] = shape[wrapped];
  if (shape != expected) {
    throw ShapeError("gather",
                     "the index has shape " + to_string(shape) + " for shape " +
                         to_string(x.shape()) + "; make them equal except along axis " +
                         std::to_string(axis),
                     where);
  }
  return record(gather_operation, x, index, shape, wrapped, where);
}

Var scatter_add(const Var& x, int axis, const Var& index, std::int64_t size, Where where) {
  require_places(index, "scatter_add", where);
  require_numbers(x, "scatter_add", where);
  Shape shape = x.shape();
  const int wrapped = shape.wrap(axis, "scatter_add", where);
  if (index.shape() != shape) {
    throw ShapeError("scatter_add",
                     "the index has shape " + to_string(index.shape()) + " for shape " +
                         to_string(shape) + "; give one position per element",
                     where);
  }
  shape = replaced(shape, wrapped, 1, Shape({size}, where));
  return record_sums(scatter_add_operation, x, index, shape, wrapped, where);
}

Var index_select(const Var& x, int axis, const Var& index, Where where) {
  require_places(index, "index_select", where);
  require_value(x, "index_select", where);
  const Shape shape = x.shape();
  const int wrapped = shape.wrap(axis, "index_select", where);
  require_axes(shape.rank() - 1 + index.rank(), "index_select", where);
  return record(index_select_operation, x, index, replaced(shape, wrapped, 1, index.shape()),
                wrapped, where);
}

Var index_add(const Var& x, int axis, const Var& index, std::int64_t size, Where where) {
  require_places(index, "index_add", where);
  require_numbers(x, "index_add", where);
  const Shape shape = x.shape();
  const Shape places = index.shape();
  // A scalar index replaces no axis of x, so the new axis may come after the last.
  const int wrapped =
      places.rank() == 0 && axis == shape.rank() ? axis : shape.wrap(axis, "index_add", where);
  const Shape result = replaced(shape, wrapped, places.rank(), Shape({size}, where));
  if (wrapped + places.rank() > shape.rank() || replaced(result, wrapped, 1, places) != shape) {
    throw ShapeError("index_add",
                     "the index has shape " + to_string(places) + " for shape " + to_string(shape) +
                         "; give it the tensor's axes from axis " + std::to_string(axis) + " on",
                     where);
  }
  return record_sums(index_add_operation, x, index, result, wrapped, where);
}

Var embedding(const Var& table, const Var& ids, Where where) {
  require_value(table, "embedding", where);
  require_places(ids, "embedding", where);
  if (table.rank() != 2) {
    throw ShapeError(
        "embedding",
        "the table is " + to_string(table.shape()) + "; give a table of two axes, (rows, width)",
        where);
  }
  return index_select(table, 0, ids, where);
}

Var one_hot(const Var& ids, std::int64_t classes, DType dtype, Where where) {
  require_places(ids, "one_hot", where);
  ValueType type{ids.shape(), dtype};
  const int axis = type.shape.rank();
  require_axes(type.shape.rank() + 1, "one_hot", where);
  type.shape = replaced(type.shape, axis, 0, Shape({classes}, where));
  const Var places = widened(ids, where);
  return places.tape().record(one_hot_operation, {&places, 1}, {&type, 1},
                              IndexAttributes{axis, where}, where);
}

}  // namespace palimpsest
