#include <algorithm>
#include <utility>

#include "autodiff/enumerators.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/places.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

struct StateAttributes {
  IndexAttributes index;
  bool reverse;

  bool operator==(const StateAttributes&) const = default;
};

struct ExtremeAttributes {
  IndexAttributes index;
  bool largest;
  bool include_self;

  bool operator==(const ExtremeAttributes&) const = default;
};

template <class T>
T multiplied(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

/// Calls `f(i, place)` for the elements i of an index with `count` rows, and for the elements of
/// `to` that they name, in order or in reverse order. Tasks own columns.
template <class I, class F>
void for_places(const LineShape& to, std::int64_t count, const I* places, bool reverse, F f) {
  const double cost = 4 * static_cast<double>(count);
  parallel_chunks(to.outer * to.inner, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    // Columns of one block, so that rows are read in the order of memory.
    for (std::int64_t first = begin, last = begin; first < end; first = last) {
      const std::int64_t block = first / to.inner;
      last = std::min(end, (block + 1) * to.inner);
      const std::int64_t start = first - block * to.inner;
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t row = block * count + (reverse ? count - 1 - k : k);
        for (std::int64_t i = start; i < start + last - first; ++i) {
          const std::int64_t element = row * to.inner + i;
          f(element, (block * to.size + places[element]) * to.inner + i);
        }
      }
    }
  });
}

/// Inputs: the first states, the index, a, and b unless it is 0. Outputs: the last states, and the
/// states before each step.
void compute_scatter_recurrence(const KernelCall& call) {
  const auto& [indexed, reverse] = call.attributes.as<StateAttributes>();
  const LineShape to(call.output().shape(), indexed.axis);
  const std::int64_t count = call.input(1).shape()[indexed.axis];
  with_places(call.input(1), to.size, "scatter_reduce", indexed.where, [&](const auto* places) {
    copy_first(call);
    visit_numeric(call.output().dtype(), [&]<class T>(T) {
      T* const states = call.output(0).as<T>();
      T* const before = call.output(1).as<T>();
      const T* const a = call.input(2).as<T>();
      const T* const b = call.inputs.size() > 3 ? call.input(3).as<T>() : nullptr;
      for_places(to, count, places, reverse, [=](std::int64_t i, std::int64_t place) {
        before[i] = states[place];
        const T product = multiplied(a[i], states[place]);
        states[place] = b == nullptr ? product : Summing::combine(product, b[i]);
      });
    });
  });
}

/// The last states, and the states before each step.
std::pair<Var, Var> record_recurrence(const Var& first, const Var& index, const Var& a,
                                      const Var& b, const StateAttributes& attributes,
                                      const Where& where);

/// The adjoint of the states runs through the same recurrence, from the last step to the first. The
/// adjoint of a state before a step is added after that step is undone.
void pull_back_recurrence(const Pullback& p) {
  StateAttributes attributes = p.attributes().as<StateAttributes>();
  attributes.reverse = !attributes.reverse;
  const Var added = p.has_adjoint(1) ? p.adjoint(1) : Var();
  const auto [first, after] =
      record_recurrence(p.adjoint(0), p.input(1), p.input(2), added, attributes, p.where());
  if (p.wants(0)) p.set(0, first);
  if (p.wants(2)) p.set(2, after * p.output(1));
  if (p.input_count() > 3 && p.wants(3)) p.set(3, after);
}

const Operation scatter_recurrence_operation{
    .name = "scatter_recurrence",
    .formula =
        "for each i in order: hᵢ = y at indexᵢ, then y at indexᵢ = aᵢ·hᵢ + bᵢ, from y = x; "
        "the adjoints are such a recurrence in reverse order, āᵢ = b̄ᵢ·hᵢ",
    .summary = "linear recurrences of the elements at given positions; products by position",
    .compute = compute_scatter_recurrence,
    .vjp = pull_back_recurrence,
};

template <bool largest>
void scatter_extreme(const KernelCall& call, const ExtremeAttributes& attributes) {
  const LineShape to(call.output().shape(), attributes.index.axis);
  const std::int64_t count = call.input(1).shape()[attributes.index.axis];
  with_places(call.input(1), to.size, "scatter_reduce", attributes.index.where,
              [&](const auto* places) {
                copy_first(call);
                visit_numeric(call.output().dtype(), [&]<class T>(T) {
                  T* const y = call.output().as<T>();
                  const T* const source = call.input(2).as<T>();
                  const T none = Extreme<largest>::template identity<T>();
                  for_places(to, attributes.include_self ? 0 : count, places, false,
                             [=](std::int64_t, std::int64_t place) { y[place] = none; });
                  for_places(to, count, places, false, [=](std::int64_t i, std::int64_t place) {
                    y[place] = Extreme<largest>::of_two(y[place], source[i]);
                  });
                });
              });
}

void compute_scatter_extreme(const KernelCall& call) {
  const auto& attributes = call.attributes.as<ExtremeAttributes>();
  if (attributes.largest) {
    scatter_extreme<true>(call, attributes);
  } else {
    scatter_extreme<false>(call, attributes);
  }
}

/// Where the index names elements of a tensor of x's shape.
Var named_places(const Var& x, int axis, const Var& index, const Where& where) {
  return scatter(full(x.tape(), x.shape(), 0, DType::boolean, where), axis, index, 1, where);
}

/// Elements that equal the result, or are NaN as the result is, get equal shares.
void pull_back_scatter_extreme(const Pullback& p) {
  const auto& attributes = p.attributes().as<ExtremeAttributes>();
  const int axis = attributes.index.axis;
  const bool include_self = attributes.include_self;
  const Where at = p.where();
  const Var x = p.input(0);
  const Var index = p.input(1);
  const Var source = p.input(2);
  const Var y = p.output();
  const auto is_result = [&](const Var& value, const Var& result) {
    return logical_or(palimpsest::equal(value, result, at), not_equal(value, value, at), at);
  };
  Var is_self = is_result(x, y);
  if (!include_self) {
    is_self = logical_and(is_self, logical_not(named_places(x, axis, index, at), at), at);
  }
  const Var is_source = is_result(source, gather(y, axis, index, at));
  const Var ones = cast(is_source, x.dtype(), at);
  const Var count =
      scatter_add(ones, axis, index, x.shape()[axis], at) + cast(is_self, x.dtype(), at);
  const Var each = p.adjoint() / count;
  if (p.wants(0)) p.set(0, palimpsest::where(is_self, each, 0, at));
  if (p.wants(2)) p.set(2, palimpsest::where(is_source, gather(each, axis, index, at), 0, at));
}

const Operation scatter_extreme_operation{
    .name = "scatter_extreme",
    .formula = "yₖ = max or min of xₖ and sᵢ over indexᵢ = k; equal shares of ȳ for the extremes",
    .summary = "largest or smallest elements by position",
    .compute = compute_scatter_extreme,
    .vjp = pull_back_scatter_extreme,
};

std::pair<Var, Var> record_recurrence(const Var& first, const Var& index, const Var& a,
                                      const Var& b, const StateAttributes& attributes,
                                      const Where& where) {
  const Var inputs[] = {first, index, a, b};
  const ValueType types[] = {first.type(), a.type()};
  const Var last =
      first.tape().record(scatter_recurrence_operation,
                          std::span(inputs).first(b.defined() ? 4 : 3), types, attributes, where);
  return {last, last.output(1)};
}

Var scattered_mean(const Var& x, int axis, const Var& index, const Var& source, bool include_self,
                   const Where& where) {
  const Var ones = full(x.tape(), source.shape(), 1, DType::i64, where);
  const Var sources = scatter_add(ones, axis, index, x.shape()[axis], where);
  const Var counts = include_self ? Located(sources, where) + 1.0 : maximum(sources, 1.0, where);
  const Var first = include_self ? x : scatter(x, axis, index, 0, where);
  const Var total = scatter_add(first, axis, index, source, where);
  return divide(total, cast(counts, x.dtype(), where), where);
}

}  // namespace

std::span<const Operation* const> scatter_reduce_operations() {
  static const Operation* const family[] = {&scatter_recurrence_operation,
                                            &scatter_extreme_operation};
  return family;
}

Var scatter_reduce(const Var& x, int axis, const Var& index, const Var& source,
                   ScatterReduction reduction, bool include_self, Where where) {
  const int wrapped = require_scatter(x, axis, index, source, "scatter_reduce", where);
  require_enumerator(reduction,
                     {ScatterReduction::sum, ScatterReduction::prod, ScatterReduction::mean,
                      ScatterReduction::amax, ScatterReduction::amin},
                     "scatter_reduce", "the reduction", where);
  if (x.dtype() == DType::boolean) {
    throw DTypeError("scatter_reduce",
                     "takes numbers, not " + to_string(x.type()) + "; cast it first", where);
  }
  const DType dtype = x.dtype();
  const Var first = widened(x, where);
  const Var places = widened(index, where);
  const Var from = widened(source, where);
  switch (reduction) {
    case ScatterReduction::sum: {
      const Var base = include_self ? first : scatter(first, wrapped, places, 0, where);
      return cast(scatter_add(base, wrapped, places, from, where), dtype, where);
    }
    case ScatterReduction::mean:
      require_floating(x, "scatter_reduce", where);
      return scattered_mean(x, wrapped, places, source, include_self, where);
    case ScatterReduction::prod: {
      const Var base = include_self ? first : scatter(first, wrapped, places, 1, where);
      const StateAttributes attributes{{wrapped, where}, false};
      const Var last = record_recurrence(base, places, from, Var(), attributes, where).first;
      return cast(last, dtype, where);
    }
    default: {
      const Var inputs[] = {first, places, from};
      const ValueType type = first.type();
      const bool largest = reduction == ScatterReduction::amax;
      const Var y = common_tape(inputs, "scatter_reduce", where)
                        .record(scatter_extreme_operation, inputs, {&type, 1},
                                ExtremeAttributes{{wrapped, where}, largest, include_self}, where);
      return cast(y, dtype, where);
    }
  }
}

}  // namespace palimpsest
