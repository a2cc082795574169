#include "autodiff/gradient.h"
#include "autodiff/operations/attributes.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/strided.h"

namespace palimpsest {
namespace {

/// Shorter rows take longer to find than to copy.
constexpr std::int64_t shortest_row = 32;

/// Both parts of a row, which consists of all elements along `axis` and the axes after it.
std::vector<Stretch> roll_stretches(const NodeView& node) {
  const auto [axis, cut] = node.attributes().as<RollAttributes>();
  const Shape shape = node.output().shape;
  const std::int64_t stride = strides_of(shape)[static_cast<std::size_t>(axis)];
  const std::int64_t row = shape[axis] * stride;
  if (row < shortest_row && row < shape.elements()) return {};
  const std::int64_t moved = cut * stride;
  return {{0, moved, 0, 0, row - moved}, {moved, row, 0}};
}

const Operation roll_operation{
    .name = "roll",
    .formula = "yᵢ = x at (i − shift) mod n, x̄ᵢ = ȳ at (i + shift) mod n",
    .summary = "elements shifted along an axis, wrapping around at its end",
    .compute =
        [](const KernelCall& call) {
          const auto [axis, cut] = call.attributes.as<RollAttributes>();
          const Operand& y = call.output();
          const Strides strides = strides_of(y.shape());
          const std::int64_t bytes = size_of(y.dtype());
          const std::int64_t row = strides[static_cast<std::size_t>(axis)] * bytes;
          const std::int64_t rest = y.shape()[axis] - cut;
          StridedBox box{y.shape(), strides, strides};
          box.sizes[axis] = cut;
          copy_strided(box, call.input().data + rest * row, y.data, bytes);
          box.sizes[axis] = rest;
          copy_strided(box, call.input().data, y.data + cut * row, bytes);
        },
    .vjp =
        [](const Pullback& p) {
          const auto [axis, cut] = p.attributes().as<RollAttributes>();
          p.set(0, roll(p.adjoint(), -cut, axis, p.where()));
        },
    .stretches = roll_stretches,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

}  // namespace

std::span<const Operation* const> roll_operations() {
  static const Operation* const family[] = {&roll_operation};
  return family;
}

Var roll(const Var& x, std::int64_t shift, int axis, Where where) {
  require_value(x, "roll", where);
  const int wrapped = x.shape().wrap(axis, "roll", where);
  const std::int64_t n = x.shape()[wrapped];
  const std::int64_t cut = n == 0 ? 0 : ((shift % n) + n) % n;
  if (cut == 0) return x;
  const ValueType type = x.type();
  return x.tape().record(roll_operation, {&x, 1}, {&type, 1}, RollAttributes{wrapped, cut}, where);
}

}  // namespace palimpsest
