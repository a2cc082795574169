#include "autodiff/gradient.h"
#include "autodiff/operations/cumulative.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

template <class T>
void compute_cumsum(const KernelCall& call) {
  const T* const x = call.input().as<T>();
  T* const y = call.output().as<T>();
  for_cumulative(call.input().shape(), call.attributes.as<CumulativeAttributes>(), Total<T>{}, 1,
                 [=](Total<T>& total, std::int64_t at, std::int64_t) {
                   total = Summing::combine(total, static_cast<Total<T>>(x[at]));
                   y[at] = static_cast<T>(total);
                 });
}

const Operation cumsum_operation{
    .name = "cumsum",
    .formula = "yᵢ = Σ over j ≤ i of xⱼ, x̄ᵢ = Σ over j ≥ i of ȳⱼ",
    .summary = "cumulative sum along an axis, from either end",
    .compute =
        [](const KernelCall& call) {
          visit_numeric(call.input().dtype(), [&]<class T>(T) { compute_cumsum<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const auto [axis, reverse] = p.attributes().as<CumulativeAttributes>();
          p.set(0, cumsum(p.adjoint(), axis, !reverse));
        },
};

}  // namespace

std::span<const Operation* const> cumsum_operations() {
  static const Operation* const family[] = {&cumsum_operation};
  return family;
}

Var cumsum(const Var& x, int axis, bool reverse, Where where) {
  require_value(x, "cumsum", where);
  if (x.dtype() == DType::boolean || is_narrow_integer(x.dtype())) {
    return cumsum(cast(x, DType::i64, where), axis, reverse, where);
  }
  const ValueType type = x.type();
  const int wrapped = type.shape.wrap(axis, "cumsum", where);
  return x.tape().record(cumsum_operation, {&x, 1}, {&type, 1},
                         CumulativeAttributes{wrapped, reverse}, where);
}

}  // namespace palimpsest
