#include "autodiff/operations/cumulative.h"

#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/places.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

CumulativeAttributes walk_of(const Pullback& p) {
  return p.attributes().as<CumulativeAttributes>();
}

/// The element before each one along the walk; `first` before the first.
Var shifted(const Var& x, const CumulativeAttributes& walk, double first, const Where& where) {
  const auto [axis, reverse] = walk;
  const std::int64_t n = x.shape()[axis];
  if (n == 0) return x;
  std::vector<Padding> widths(static_cast<std::size_t>(x.rank()));
  widths[static_cast<std::size_t>(axis)] = reverse ? Padding{0, 1} : Padding{1, 0};
  const Slice kept = reverse ? Slice{.start = 1} : Slice{.stop = n - 1};
  return pad(slice(x, axis, kept, where), widths, first, where);
}

/// The element after each one along the walk; the last one after itself.
Var following(const Var& x, const CumulativeAttributes& walk, const Where& where) {
  const auto [axis, reverse] = walk;
  const std::int64_t n = x.shape()[axis];
  if (n == 0) return x;
  const Var last = slice(x, axis, {.start = reverse ? 0 : n - 1, .stop = reverse ? 1 : n}, where);
  const Var rest = slice(x, axis, reverse ? Slice{.stop = n - 1} : Slice{.start = 1}, where);
  return reverse ? concat({last, rest}, axis, where) : concat({rest, last}, axis, where);
}

void compute_cumprod(const KernelCall& call) {
  visit_numeric(call.input().dtype(), [&]<class T>(T) {
    const T* const x = call.input().as<T>();
    T* const y = call.output().as<T>();
    for_cumulative(call.input().shape(), call.attributes.as<CumulativeAttributes>(), Total<T>(1), 1,
                   [=](Total<T>& product, std::int64_t at, std::int64_t) {
                     if constexpr (std::is_integral_v<T>) {
                       product = static_cast<T>(static_cast<std::uint64_t>(product) *
                                                static_cast<std::uint64_t>(x[at]));
                     } else {
                       product *= static_cast<Total<T>>(x[at]);
                     }
                     y[at] = static_cast<T>(product);
                   });
  });
}

template <class T>
struct BestSoFar {
  T value;
  std::int64_t place;  ///< −1 before the first element
};

template <bool largest>
void compute_cumulative_extreme(const KernelCall& call) {
  visit_numeric(call.input().dtype(), [&]<class T>(T) {
    const T* const x = call.input().as<T>();
    T* const y = call.output(0).as<T>();
    auto* const places = call.output(1).as<std::int64_t>();
    const BestSoFar<T> none{Extreme<largest>::template identity<T>(), -1};
    for_cumulative(call.input().shape(), call.attributes.as<CumulativeAttributes>(), none, 2,
                   [=](BestSoFar<T>& best, std::int64_t at, std::int64_t row) {
                     const T value = x[at];
                     const bool is_worse = largest ? value < best.value : value > best.value;
                     // NaN is not worse than anything, and only a NaN takes its place.
                     if (!is_worse) [[unlikely]] {
                       if (best.value == best.value || value != value) best = {value, row};
                     }
                     y[at] = best.value;
                     places[at] = best.place;
                   });
  });
}

/// log Σ exp as the largest term and the sum relative to it.
struct LogSum {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
};

void compute_logcumsumexp(const KernelCall& call) {
  visit_floating(call.input().dtype(), [&]<class T>(T) {
    const T* const x = call.input().as<T>();
    T* const y = call.output().as<T>();
    for_cumulative(call.input().shape(), call.attributes.as<CumulativeAttributes>(), LogSum{}, 40,
                   [=](LogSum& total, std::int64_t at, std::int64_t) {
                     const double term = x[at];
                     if (term == total.largest) {  // also where both are infinite
                       total.sum += 1;
                     } else if (term < total.largest) {
                       total.sum += std::exp(term - total.largest);
                     } else {
                       total.sum = total.sum * std::exp(total.largest - term) + 1;
                       total.largest = term;
                     }
                     y[at] = static_cast<T>(total.largest + std::log(total.sum));
                   });
  });
}

void compute_recurrence(const KernelCall& call) {
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    const T* const a = call.input(0).as<T>();
    const T* const b = call.input(1).as<T>();
    T* const y = call.output().as<T>();
    struct State {
      Total<T> value = 0;
      bool begun = false;
    };
    for_cumulative(call.output().shape(), call.attributes.as<CumulativeAttributes>(), State{}, 2,
                   [=](State& state, std::int64_t at, std::int64_t) {
                     const auto next = static_cast<Total<T>>(a[at]) * state.value;
                     state.value = (state.begun ? next : 0) + static_cast<Total<T>>(b[at]);
                     state.begun = true;
                     y[at] = static_cast<T>(state.value);
                   });
  });
}

/// With h = ȳ the sum of all that flows into a state: hᵢ = ȳᵢ + aᵢ₊₁·hᵢ₊₁, the same recurrence from
/// the other end.
void pull_back_recurrence(const Pullback& p) {
  const CumulativeAttributes walk = walk_of(p);
  const Var a = following(p.input(0), walk, p.where());
  const Var flow = linear_recurrence(a, p.adjoint(), walk.axis, !walk.reverse, p.where());
  if (p.wants(0)) p.set(0, flow * shifted(p.output(), walk, 0, p.where()));
  if (p.wants(1)) p.set(1, flow);
}

/// With pᵢ the product before i and hᵢ = ȳᵢ + xᵢ₊₁·hᵢ₊₁, x̄ᵢ = pᵢ·hᵢ. There is no division, so zeros
/// need no special case.
void pull_back_cumprod(const Pullback& p) {
  const CumulativeAttributes walk = walk_of(p);
  const Var next = following(p.input(), walk, p.where());
  const Var flow = linear_recurrence(next, p.adjoint(), walk.axis, !walk.reverse, p.where());
  p.set(0, flow * shifted(p.output(), walk, 1, p.where()));
}

/// exp(a − b) for a ≤ b: 1 where they are equal, also where both are infinite.
Var decay_between(const Var& a, const Var& b, const Where& where) {
  const Var are_equal = palimpsest::equal(a, b, where);
  return exp(palimpsest::where(are_equal, 0, a, where) - palimpsest::where(are_equal, 0, b, where),
             where);
}

/// x̄ᵢ = exp(xᵢ − yᵢ)·hᵢ with hᵢ = ȳᵢ + exp(yᵢ − yᵢ₊₁)·hᵢ₊₁. No exponent is above 0.
void pull_back_logcumsumexp(const Pullback& p) {
  const CumulativeAttributes walk = walk_of(p);
  const Var y = p.output();
  const Var factors = decay_between(y, following(y, walk, p.where()), p.where());
  const Var flow = linear_recurrence(factors, p.adjoint(), walk.axis, !walk.reverse, p.where());
  const Var x = p.input();
  const Var is_least = equal(x, -std::numeric_limits<double>::infinity(), p.where());
  // Sanitized before the function, so that its derivatives are numbers too.
  const Var share = decay_between(where(is_least, y, x, p.where()), y, p.where());
  // A product also where the share is 0: the derivative of a NaN is NaN.
  p.set(0, where(is_least, 0, share, p.where()) * flow);
}

void pull_back_cumulative_extreme(const Pullback& p) {
  const int axis = walk_of(p).axis;
  p.set(0, scatter_add(p.adjoint(), axis, p.output(1), p.input().shape()[axis], p.where()));
}

Cost costing(const NodeView& node, double flops) {
  return {flops * static_cast<double>(node.output().shape.elements()), bytes_moved(node)};
}

const Operation cumprod_operation{
    .name = "cumprod",
    .formula = "yᵢ = Π over j ≤ i of xⱼ, x̄ᵢ = yᵢ₋₁·hᵢ with hᵢ = ȳᵢ + xᵢ₊₁·hᵢ₊₁",
    .summary = "cumulative product along an axis, from either end",
    .compute = compute_cumprod,
    .vjp = pull_back_cumprod,
};

const Operation cummax_operation{
    .name = "cummax",
    .formula = "yᵢ = max over j ≤ i of xⱼ, x̄ = ȳ added at the positions of the maxima",
    .summary = "cumulative maximum along an axis and its position, from either end",
    .compute = compute_cumulative_extreme<true>,
    .vjp = pull_back_cumulative_extreme,
    .cost = [](const NodeView& node) { return costing(node, 3); },
    .mixed = MixedPrecision::follows,
};

const Operation cummin_operation{
    .name = "cummin",
    .formula = "yᵢ = min over j ≤ i of xⱼ, x̄ = ȳ added at the positions of the minima",
    .summary = "cumulative minimum along an axis and its position, from either end",
    .compute = compute_cumulative_extreme<false>,
    .vjp = pull_back_cumulative_extreme,
    .cost = [](const NodeView& node) { return costing(node, 3); },
    .mixed = MixedPrecision::follows,
};

const Operation logcumsumexp_operation{
    .name = "logcumsumexp",
    .formula =
        "yᵢ = log Σ over j ≤ i of exp xⱼ, x̄ᵢ = exp(xᵢ - yᵢ)·hᵢ with hᵢ = ȳᵢ + exp(yᵢ - yᵢ₊₁)·hᵢ₊₁",
    .summary = "logarithm of the cumulative sum of exponentials along an axis, from either end",
    .compute = compute_logcumsumexp,
    .vjp = pull_back_logcumsumexp,
    .cost = [](const NodeView& node) { return costing(node, 60); },
};

const Operation linear_recurrence_operation{
    .name = "linear_recurrence",
    .formula = "yᵢ = aᵢ·yᵢ₋₁ + bᵢ, b̄ᵢ = ȳᵢ + aᵢ₊₁·b̄ᵢ₊₁, āᵢ = b̄ᵢ·yᵢ₋₁",
    .summary = "linear recurrence along an axis, from either end",
    .compute = compute_recurrence,
    .vjp = pull_back_recurrence,
    .cost = [](const NodeView& node) { return costing(node, 4); },
};

ValuesAndIndices cumulative_extreme(const Operation& operation, const Var& x, int axis,
                                    bool reverse, const Where& where) {
  require_value(x, operation.name, where);
  if (x.dtype() == DType::boolean) {
    throw DTypeError(operation.name,
                     "takes numbers, not " + to_string(x.type()) + "; cast it first", where);
  }
  if (is_narrow_integer(x.dtype())) {
    const auto [values, indices] =
        cumulative_extreme(operation, widened(x, where), axis, reverse, where);
    return {cast(values, x.dtype(), where), indices};
  }
  const Shape shape = x.shape();
  const int wrapped = shape.wrap(axis, operation.name, where);
  const ValueType types[] = {{shape, x.dtype()}, {shape, DType::i64}};
  const Var y =
      x.tape().record(operation, {&x, 1}, types, CumulativeAttributes{wrapped, reverse}, where);
  return {y, y.output(1)};
}

}  // namespace

std::span<const Operation* const> cumulative_operations() {
  static const Operation* const family[] = {&cumprod_operation, &cummax_operation,
                                            &cummin_operation, &logcumsumexp_operation,
                                            &linear_recurrence_operation};
  return family;
}

Var cumprod(const Var& x, int axis, bool reverse, Where where) {
  require_value(x, "cumprod", where);
  if (x.dtype() == DType::boolean || is_narrow_integer(x.dtype())) {
    return cumprod(cast(x, DType::i64, where), axis, reverse, where);
  }
  const ValueType type = x.type();
  const int wrapped = type.shape.wrap(axis, "cumprod", where);
  return x.tape().record(cumprod_operation, {&x, 1}, {&type, 1},
                         CumulativeAttributes{wrapped, reverse}, where);
}

ValuesAndIndices cummax(const Var& x, int axis, bool reverse, Where where) {
  return cumulative_extreme(cummax_operation, x, axis, reverse, where);
}

ValuesAndIndices cummin(const Var& x, int axis, bool reverse, Where where) {
  return cumulative_extreme(cummin_operation, x, axis, reverse, where);
}

Var logcumsumexp(const Var& x, int axis, bool reverse, Where where) {
  require_floating(x, "logcumsumexp", where);
  const ValueType type = x.type();
  const int wrapped = type.shape.wrap(axis, "logcumsumexp", where);
  return x.tape().record(logcumsumexp_operation, {&x, 1}, {&type, 1},
                         CumulativeAttributes{wrapped, reverse}, where);
}

Var linear_recurrence(const Var& a, const Var& b, int axis, bool reverse, Where where) {
  const Var given[] = {a, b};
  Tape& tape = common_tape(given, "linear_recurrence", where);
  require_floating(a, "linear_recurrence", where);
  require_floating(b, "linear_recurrence", where);
  const ValueType type{broadcast(a.shape(), b.shape(), "linear_recurrence", where),
                       promote(a.dtype(), b.dtype())};
  const int wrapped = type.shape.wrap(axis, "linear_recurrence", where);
  const auto fitting = [&](const Var& x) {
    const Var wide = x.shape() == type.shape ? x : broadcast_to(x, type.shape, where);
    return cast(wide, type.dtype, where);
  };
  const Var first = fitting(a);
  const Var second = fitting(b);
  const Var inputs[] = {first, second};
  return tape.record(linear_recurrence_operation, inputs, {&type, 1},
                     CumulativeAttributes{wrapped, reverse}, where);
}

}  // namespace palimpsest
