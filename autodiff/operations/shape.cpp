#include "autodiff/operations/shape.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/broadcasting.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

const Operation reshape_operation{
    .name = "reshape",
    .formula = "y = x, x̄ = ȳ under x's shape",
    .summary = "the same elements under another shape",
    .vjp = [](const Pullback& p) { p.set(0, reshape(p.adjoint(), p.input().shape())); },
    .half = HalfSupport::native,
    .view = true,
};

const Operation broadcast_to_operation{
    .name = "broadcast_to",
    .formula = "y = x repeated, x̄ = ȳ summed over the repetitions",
    .summary = "repetition along axes of size 1",
    .compute =
        [](const KernelCall& call) {
          const Operand& x = call.input();
          const Operand& y = call.output();
          visit(y.dtype(), [&]<class T>(T) {
            for_rows(Broadcast<1>(y.shape(), {x.shape()}), [&](const Row<1>& row) {
              const T* from = x.as<T>() + row.offset[0];
              T* to = y.as<T>() + row.first;
              if (row.step[0] == 0)
                std::fill_n(to, row.length, *from);
              else
                std::copy_n(from, row.length, to);
            });
          });
        },
    .vjp = [](const Pullback& p) { p.set(0, sum_to(p.adjoint(), p.input().shape())); },
    .half = HalfSupport::native,
};

const Operation* const family[] = {&reshape_operation, &broadcast_to_operation};

}  // namespace

std::span<const Operation* const> shape_operations() { return family; }

Var reshape(const Var& x, const Shape& shape, Where where) {
  const Shape from = x.shape();
  if (from == shape) return x;
  if (from.elements() != shape.elements()) {
    throw ShapeError("reshape",
                     "shape " + to_string(from) + " has " + std::to_string(from.elements()) +
                         " elements, " + to_string(shape) + " has " +
                         std::to_string(shape.elements()),
                     where);
  }
  const ValueType type{shape, x.dtype()};
  return x.tape().record(reshape_operation, {&x, 1}, {&type, 1}, {}, where);
}

Var reshape(const Var& x, std::initializer_list<std::int64_t> sizes, Where where) {
  return reshape(x, infer_shape({sizes.begin(), sizes.size()}, x.shape().elements()), where);
}

Var broadcast_to(const Var& x, const Shape& shape, Where where) {
  const Shape from = x.shape();
  if (from == shape) return x;
  if (broadcast(from, shape, "broadcast_to", where) != shape) {
    throw ShapeError("broadcast_to",
                     "shape " + to_string(from) + " does not repeat to " + to_string(shape), where);
  }
  const ValueType type{shape, x.dtype()};
  return x.tape().record(broadcast_to_operation, {&x, 1}, {&type, 1}, {}, where);
}

}  // namespace palimpsest
