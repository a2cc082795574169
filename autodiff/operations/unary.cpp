#include "autodiff/operations/unary.h"

#include <array>
#include <utility>

#include "autodiff/kernels/kernels.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/registry.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

using functions::Parameters;

Parameters parameters_of(const Attributes& attributes) {
  return attributes.empty() ? Parameters{} : attributes.as<Parameters>();
}

template <std::size_t index>
void compute(const KernelCall& call) {
  const Parameters parameters = parameters_of(call.attributes);
  const Operand& x = call.input();
  const Operand& y = call.output();
  visit_floating(y.dtype(), [&]<class T>(T) {
    const auto function = kernels().unary<T>()[index];
    parallel_chunks(y.elements(), grain_for(4), [&](std::int64_t begin, std::int64_t end) {
      function(x.as<T>() + begin, y.as<T>() + begin, end - begin, parameters.data());
    });
  });
}

template <class F>
concept Smooth = requires(const Var& v) { F::adjoint(v, v, v); };
template <class F>
concept SmoothWithParameters =
    requires(const Var& v, const Parameters& p) { F::adjoint(v, v, v, p); };

template <class F>
void pull_back(const Pullback& p) {
  if constexpr (Smooth<F>) {
    p.set(0, F::adjoint(p.adjoint(), p.input(), p.output()));
  } else {
    const Attributes& attributes = p.attributes();
    const Parameters parameters = parameters_of(attributes);
    p.set(0, F::adjoint(p.adjoint(), p.input(), p.output(), parameters));
  }
}

Cost transcendental_cost(const NodeView& node) {
  const auto elements = static_cast<double>(node.output().shape.elements());
  return {10 * elements, 2 * static_cast<double>(node.output().bytes())};
}

template <class F>
constexpr void (*pullback_of())(const Pullback&) {
  if constexpr (Smooth<F> || SmoothWithParameters<F>) return pull_back<F>;
  return nullptr;
}

template <class F>
Operation make_operation() {
  return {
      .name = F::text.name,
      .formula = F::text.formula,
      .summary = F::text.summary,
      .compute = compute<functions::position<F, functions::Unary>>,
      .vjp = pullback_of<F>(),
      .cost = transcendental_cost,
  };
}

template <class... F>
std::array<Operation, sizeof...(F)> make_operations(functions::List<F...>) {
  return {make_operation<F>()...};
}

const std::array<Operation, functions::Unary::size>& table() {
  static const auto operations = make_operations(functions::Unary{});
  return operations;
}

}  // namespace

std::span<const Operation* const> unary_operations() {
  static const auto pointers = [] {
    std::array<const Operation*, functions::Unary::size> list{};
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = &table()[i];
    return list;
  }();
  return pointers;
}

Var record_unary(std::size_t index, const Var& x, const Parameters& parameters,
                 const Where& where) {
  const Operation& operation = table()[index];
  const ValueType type = x.type();
  if (!is_floating(type.dtype)) {
    throw DTypeError(operation.name,
                     "takes floating dtypes, not " + to_string(type) + "; cast it first", where);
  }
  const bool given = parameters != Parameters{};
  return x.tape().record(operation, {&x, 1}, {&type, 1},
                         given ? Attributes(parameters) : Attributes(), where);
}

}  // namespace palimpsest
