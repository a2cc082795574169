#include <utility>

#include "autodiff/gradient.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/places.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/scattered.h"
#include "autodiff/operations/shape.h"

/// Sums at given positions of a tensor. Sums of zeros are in index.cpp.
namespace palimpsest {
namespace {

/// Adds rows of the source, `count` for each block of x, to a copy of x. The index's element
/// `place_of(row, column, columns)` is the place of an element of the source.
template <class Place>
void add_to_copy(const KernelCall& call, std::int64_t count, const char* operation,
                 Place place_of) {
  const auto& [axis, where] = call.attributes.as<IndexAttributes>();
  const LineShape to(call.output().shape(), axis);
  with_places(call.input(1), to.size, operation, where, [&](const auto* places) {
    copy_first(call);
    visit_numeric(call.output().dtype(), [&]<class T>(T) {
      write_rows(
          to, count, call.input(2).as<T>(), call.output().as<T>(),
          [&](std::int64_t row, std::int64_t i) { return places[place_of(row, i, to.inner)]; },
          [](T& sum, const T& from) { sum = Summing::combine(sum, from); });
    });
  });
}

int index_axis(const Attributes& attributes) { return attributes.as<IndexAttributes>().axis; }

void compute_scatter_sum(const KernelCall& call) {
  const std::int64_t count = call.input(1).shape()[index_axis(call.attributes)];
  add_to_copy(call, count, "scatter_add",
              [](std::int64_t row, std::int64_t i, std::int64_t inner) { return row * inner + i; });
}

void compute_index_sum(const KernelCall& call) {
  const std::int64_t count = call.input(1).elements();
  add_to_copy(call, count, "index_add",
              [count](std::int64_t row, std::int64_t, std::int64_t) { return row % count; });
}

/// x, the positions and the source are read, and the result is written.
Cost scatter_sum_cost(const NodeView& node) {
  const auto added = static_cast<double>(node.input(2).shape.elements());
  return {added, bytes_moved(node) + static_cast<double>(node.input(2).bytes())};
}

const Operation scatter_sum_operation{
    .name = "scatter_sum",
    .formula = "yₖ = xₖ + Σ over indexᵢ = k of sᵢ; x̄ = ȳ, s̄ᵢ = ȳ at indexᵢ",
    .summary = "elements added to those of a tensor at given positions along an axis",
    .compute = compute_scatter_sum,
    .vjp =
        [](const Pullback& p) {
          p.set(0, p.adjoint());
          if (!p.wants(2)) return;
          p.set(2, gather(p.adjoint(), index_axis(p.attributes()), p.input(1), p.where()));
        },
    .cost = scatter_sum_cost,
    .in_place = [](const NodeView&, std::size_t) { return 0; },
};

const Operation index_sum_operation{
    .name = "index_sum",
    .formula = "yₖ = slice k of x + Σ over indexᵢ = k of slice sᵢ; x̄ = ȳ, s̄ᵢ = slice indexᵢ of ȳ",
    .summary = "slices added to those of a tensor at given positions along an axis",
    .compute = compute_index_sum,
    .vjp =
        [](const Pullback& p) {
          p.set(0, p.adjoint());
          if (!p.wants(2)) return;
          p.set(2, index_select(p.adjoint(), index_axis(p.attributes()), p.input(1), p.where()));
        },
    .cost = scatter_sum_cost,
    .in_place = [](const NodeView&, std::size_t) { return 0; },
};

/// The axis is in [0, rank), and the shapes fit.
Var record_scatter_sum(const Operation& operation, const char* name, const Var& x, int axis,
                       const Var& index, const Var& source, const Where& where) {
  if (x.dtype() == DType::boolean) {
    throw DTypeError(name, "takes numbers, not " + to_string(x.type()) + "; cast it first", where);
  }
  const Var inputs[] = {widened(x, where), widened(index, where), widened(source, where)};
  const ValueType type = inputs[0].type();
  const Var sums = common_tape(inputs, name, where)
                       .record(operation, inputs, {&type, 1}, IndexAttributes{axis, where}, where);
  return cast(sums, x.dtype(), where);
}

}  // namespace

std::span<const Operation* const> scatter_sum_operations() {
  static const Operation* const family[] = {&scatter_sum_operation, &index_sum_operation};
  return family;
}

Var scatter_add(const Var& x, int axis, const Var& index, const Var& source, Where where) {
  const int wrapped = require_scatter(x, axis, index, source, "scatter_add", where);
  return record_scatter_sum(scatter_sum_operation, "scatter_add", x, wrapped, index, source, where);
}

Var index_add(const Var& x, int axis, const Var& index, const Var& source, Where where) {
  const int wrapped = require_index_source(x, axis, index, source, "index_add", where);
  return record_scatter_sum(index_sum_operation, "index_add", x, wrapped, index, source, where);
}

Var add_scattered(const Var& a, const Var& b, ValueId first) {
  std::optional<Scattered> scattered = scattered_among_zeros(b, first);
  const Var& total = scattered ? a : b;
  if (!scattered) scattered = scattered_among_zeros(a, first);
  if (!scattered) return Var();
  const auto& [source, index, axis, by_element, shape, where] = *scattered;
  const Var to = reshape(total, shape);
  const Var sum = by_element ? scatter_add(to, axis, index, source, where)
                             : index_add(to, axis, index, source, where);
  return reshape(sum, a.shape());
}

}  // namespace palimpsest
