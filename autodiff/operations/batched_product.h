#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "autodiff/kernels/gemm.h"
#include "autodiff/operation.h"
#include "autodiff/operations/products.h"

namespace palimpsest {

/// One node's products: the sizes of the matrices, and the batch axes split into output axes and
/// summed axes. A batch axis of the operands that the output lacks is summed. The adjoint of a
/// broadcast operand is computed this way, without copies of the operand.
class BatchedProduct {
 public:
  BatchedProduct(const Shape& a, const Shape& b, const Shape& y, const MatmulOptions& options)
      : m(y.size(-2)), n(y.size(-1)), k(a.size(options.transpose_a ? -2 : -1)) {
    if (a.rank() == 2 && b.rank() == 2) return;
    const auto a_strides = strides_of(a);
    const auto b_strides = strides_of(b);
    const auto y_strides = strides_of(y);
    for (int back = std::max(a.rank(), b.rank()); back > 2; --back) {
      const auto step = [&](const Shape& shape, const auto& strides) {
        const int axis = shape.rank() - back;
        return axis < 0 || shape[axis] == 1 ? 0 : strides[static_cast<std::size_t>(axis)];
      };
      const auto size = [&](const Shape& shape) {
        return back > shape.rank() ? 1 : shape[shape.rank() - back];
      };
      const std::int64_t joint = size(a) == 1 ? size(b) : size(a);
      if (joint == 1) continue;
      const BatchAxis axis{joint, step(a, a_strides), step(b, b_strides), step(y, y_strides)};
      if (size(y) == joint) {
        outputs_[output_axes_++] = axis;
        output_count *= joint;
      } else {
        terms_[term_axes_++] = axis;
        term_count *= joint;
      }
    }
  }

  explicit BatchedProduct(const NodeView& node)
      : BatchedProduct(node.input(0).shape, node.input(1).shape, node.output().shape,
                       node.attributes().as<MatmulOptions>()) {}

  std::span<const BatchAxis> outputs() const { return std::span(outputs_).first(output_axes_); }
  std::span<const BatchAxis> terms() const { return std::span(terms_).first(term_axes_); }

  std::int64_t m, n, k;
  std::int64_t output_count = 1;
  std::int64_t term_count = 1;

 private:
  std::array<BatchAxis, max_rank> outputs_;
  std::array<BatchAxis, max_rank> terms_;
  std::size_t output_axes_ = 0;
  std::size_t term_axes_ = 0;
};

inline BatchedProduct product_of(const KernelCall& call) {
  return {call.input(0).shape(), call.input(1).shape(), call.output().shape(),
          call.attributes.as<MatmulOptions>()};
}

/// The first product of the batch; y is the result, or the f32 sums before rounding.
template <class T>
Gemm<T> first_of(const KernelCall& call, const BatchedProduct& all, SumOf<T>* y) {
  const auto& options = call.attributes.as<MatmulOptions>();
  const Operand& a = call.input(0);
  const Operand& b = call.input(1);
  return {.transpose_a = options.transpose_a,
          .transpose_b = options.transpose_b,
          .m = all.m,
          .n = all.n,
          .k = all.k,
          .a = a.as<T>(),
          .lda = a.shape().size(-1),
          .b = b.as<T>(),
          .ldb = b.shape().size(-1),
          .c = y,
          .ldc = all.n,
          .addend = call.inputs.size() > 2 ? call.input(2).as<SumOf<T>>() : nullptr};
}

}  // namespace palimpsest
