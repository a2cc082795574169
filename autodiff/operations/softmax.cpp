#include "autodiff/operations/normalization.h"

#include "autodiff/gradient.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/operations/attributes.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/lines.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

int axis_of(const Attributes& attributes) { return attributes.as<AxisAttributes>().axis; }

template <class T>
using Forward = void (*SoftmaxKernels<T>::*)(const Lines&, const T*, T*);
template <class T>
using Backward = void (*SoftmaxKernels<T>::*)(const Lines&, const T*, const T*, T*);

template <class T>
void run(const KernelCall& call, Forward<T> kernel) {
  const T* x = call.input().as<T>();
  T* y = call.output().as<T>();
  for_lines(call.output().shape(), axis_of(call.attributes), 10,
            [&](const Lines& lines, std::int64_t offset, std::int64_t) {
              (kernels().softmax<T>().*kernel)(lines, x + offset, y + offset);
            });
}

template <class T>
void run_adjoint(const KernelCall& call, Backward<T> kernel) {
  const T* dy = call.input(0).as<T>();
  const T* y = call.input(1).as<T>();
  T* dx = call.output().as<T>();
  for_lines(call.output().shape(), axis_of(call.attributes), 6,
            [&](const Lines& lines, std::int64_t offset, std::int64_t) {
              (kernels().softmax<T>().*kernel)(lines, dy + offset, y + offset, dx + offset);
            });
}

template <int per_element>
Cost softmax_cost(const NodeView& node) {
  const auto elements = static_cast<double>(node.output().shape.elements());
  const auto moved = static_cast<double>(node.output().bytes());
  return {per_element * elements, static_cast<double>(node.input_count() + 1) * moved};
}

Var log_softmax_adjoint(const Var& dy, const Var& y, int axis);

const Operation softmax_operation{
    .name = "softmax",
    .formula = "y = exp(x) / Σ exp(x), x̄ = y·(ȳ - Σ ȳ·y)",
    .summary = "exponentials along an axis divided by their sum; keeps y",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(),
                         [&]<class T>(T) { run<T>(call, &SoftmaxKernels<T>::softmax); });
        },
    .vjp =
        [](const Pullback& p) {
          p.set(0, softmax_adjoint(p.adjoint(), p.output(), axis_of(p.attributes())));
        },
    .cost = softmax_cost<13>,
    .mixed = MixedPrecision::follows,
};

const Operation log_softmax_operation{
    .name = "log_softmax",
    .formula = "y = x - log Σ exp(x), x̄ = ȳ - exp(y)·Σ ȳ",
    .summary = "logarithm of the softmax along an axis; keeps y",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(),
                         [&]<class T>(T) { run<T>(call, &SoftmaxKernels<T>::log_softmax); });
        },
    .vjp =
        [](const Pullback& p) {
          p.set(0, log_softmax_adjoint(p.adjoint(), p.output(), axis_of(p.attributes())));
        },
    .cost = softmax_cost<14>,
};

// With s = Σ dy·y and the adjoint g of dx: dy gets y·(g − Σ g·y), which is this operation again,
// and y gets g·(dy − s) − dy·Σ g·y.
const Operation softmax_adjoint_operation{
    .name = "softmax_adjoint",
    .formula = "dx = y·(dy - Σ dy·y)",
    .summary = "adjoint of softmax",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) {
            run_adjoint<T>(call, &SoftmaxKernels<T>::softmax_adjoint);
          });
        },
    .vjp =
        [](const Pullback& p) {
          const int axis = axis_of(p.attributes());
          const Var g = p.adjoint();
          const Var dy = p.input(0);
          const Var y = p.input(1);
          if (p.wants(0)) p.set(0, softmax_adjoint(g, y, axis));
          if (p.wants(1)) {
            p.set(1, g * (dy - sum(dy * y, {axis}, true)) - dy * sum(g * y, {axis}, true));
          }
        },
    .cost = softmax_cost<5>,
    .mixed = MixedPrecision::follows,
};

// With p = exp(y) and the adjoint g of dx: dy gets g − Σ g·p, y gets −g·p·Σ dy.
const Operation log_softmax_adjoint_operation{
    .name = "log_softmax_adjoint",
    .formula = "dx = dy - exp(y)·Σ dy",
    .summary = "adjoint of log_softmax",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) {
            run_adjoint<T>(call, &SoftmaxKernels<T>::log_softmax_adjoint);
          });
        },
    .vjp =
        [](const Pullback& p) {
          const int axis = axis_of(p.attributes());
          const Var weighted = p.adjoint() * exp(p.input(1));
          if (p.wants(0)) p.set(0, p.adjoint() - sum(weighted, {axis}, true));
          if (p.wants(1)) p.set(1, -(weighted * sum(p.input(0), {axis}, true)));
        },
    .cost = softmax_cost<13>,
};

Var record(const Operation& operation, std::initializer_list<Var> inputs, int axis,
           const Where& where) {
  const Var& x = *inputs.begin();
  require_floating(x, operation.name, where);
  const AxisAttributes attributes{x.shape().wrap(axis, operation.name, where)};
  const ValueType type = x.type();
  return x.tape().record(operation, inputs, {&type, 1}, attributes, where);
}

Var log_softmax_adjoint(const Var& dy, const Var& y, int axis) {
  return record(log_softmax_adjoint_operation, {dy, y}, axis, Where::current());
}

}  // namespace

std::span<const Operation* const> softmax_operations() {
  static const Operation* const family[] = {&softmax_operation, &log_softmax_operation,
                                            &softmax_adjoint_operation,
                                            &log_softmax_adjoint_operation};
  return family;
}

Var softmax(const Var& x, int axis, Where where) {
  return record(softmax_operation, {x}, axis, where);
}

Var log_softmax(const Var& x, int axis, Where where) {
  return record(log_softmax_operation, {x}, axis, where);
}

Var softmax_adjoint(const Var& dy, const Var& y, int axis, Where where) {
  return record(softmax_adjoint_operation, {dy, y}, axis, where);
}

}  // namespace palimpsest
