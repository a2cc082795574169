#include "autodiff/operations/leaf.h"

#include <algorithm>

#include "autodiff/convert.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/attributes.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {

const Operation parameter_operation{
    .name = "parameter",
    .formula = "x",
    .summary = "a leaf for which backward returns a gradient",
    .half = HalfSupport::native,
    .leaf = true,
};

const Operation constant_operation{
    .name = "constant",
    .formula = "x",
    .summary = "a leaf without a gradient",
    .half = HalfSupport::native,
    .leaf = true,
};

namespace {

template <class T>
void fill_run(const PointwiseCall& call) {
  const double value = call.attributes.as<FullAttributes>().value;
  std::fill_n(call.to<T>(), call.n, convert_element<T>(value));
}

}  // namespace

const Operation full_operation{
    .name = "full",
    .formula = "y = value",
    .summary = "one number in every element",
    .compute =
        [](const KernelCall& call) {
          const Operand& y = call.output();
          const double value = call.attributes.as<FullAttributes>().value;
          visit(y.dtype(), [&]<class T>(T) {
            std::fill_n(y.as<T>(), y.elements(), convert_element<T>(value));
          });
        },
    .pointwise =
        [](const NodeView& node) {
          return visit(node.output().dtype,
                       []<class T>(T) { return PointwiseKernel{fill_run<T>}; });
        },
    .half = HalfSupport::native,
};

namespace {

const Operation stop_gradient_operation{
    .name = "stop_gradient",
    .formula = "y = x, dy/dx = 0",
    .summary = "x itself, without derivatives",
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
    .view = true,
};

}  // namespace

const Operation identity_operation{
    .name = "identity",
    .formula = "y = x, x̄ = ȳ",
    .summary = "x itself, as a new value",
    .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
    .view = true,
};

const Operation cast_operation{
    .name = "cast",
    .formula = "y = x in another dtype; x̄ = ȳ converted back",
    .summary = "elements converted to another dtype",
    .compute = [](const KernelCall& call) { convert(call.input(), call.output()); },
    .vjp = [](const Pullback& p) { p.set(0, cast(p.adjoint(), p.input().dtype())); },
    .pointwise =
        [](const NodeView& node) { return conversion(node.input(0).dtype, node.output().dtype); },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::recorded,
};

std::span<const Operation* const> leaf_operations() {
  static const Operation* const family[] = {
      &parameter_operation,     &constant_operation, &full_operation, &linspace_operation,
      &stop_gradient_operation, &identity_operation, &cast_operation};
  return family;
}

Attributes full_attributes(double value) { return FullAttributes{value}; }

Var full(Tape& tape, const Shape& shape, double value, DType dtype, Where where) {
  const ValueType type{shape, dtype};
  return tape.record(full_operation, {}, {&type, 1}, FullAttributes{value}, where);
}

Var full_like(const Var& x, double value, Where where) {
  require_value(x, "full_like", where);
  return full(x.tape(), x.shape(), value, x.dtype(), where);
}

Var stop_gradient(const Var& x, Where where) {
  require_value(x, "stop_gradient", where);
  const ValueType type = x.type();
  return x.tape().record(stop_gradient_operation, {&x, 1}, {&type, 1}, {}, where);
}

Var identity(const Var& x, Where where) {
  require_value(x, "identity", where);
  const ValueType type = x.type();
  return x.tape().record(identity_operation, {&x, 1}, {&type, 1}, {}, where);
}

Var cast(const Var& x, DType dtype, Where where) {
  require_value(x, "cast", where);
  if (x.dtype() == dtype) return x;
  const ValueType type{x.shape(), dtype};
  return x.tape().record(cast_operation, {&x, 1}, {&type, 1}, {}, where);
}

}  // namespace palimpsest
