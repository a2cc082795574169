#include "autodiff/operations/products.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operations/batched_product.h"
#include "autodiff/operations/half_product.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/matrices.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

/// Adds the third input if there is one.
void compute_floating(const KernelCall& call) {
  const Operand& y = call.output();
  const BatchedProduct all = product_of(call);
  visit_floating(y.dtype(), [&]<class T>(T) {
    gemm_batch(first_of<T>(call, all, y.as<T>()), all.outputs(), all.terms(), call.workspace);
  });
}

void compute_matmul(const KernelCall& call) {
  if (is_half(call.output().dtype())) {
    compute_half_product(call);
  } else {
    compute_floating(call);
  }
}

void pull_back_matmul(const Pullback& p) {
  const auto [ta, tb] = p.attributes().as<MatmulOptions>();
  const Var a = p.input(0);
  const Var b = p.input(1);
  const Var dy = p.adjoint();
  const auto set = [&](std::size_t i, const Var& left, const Var& right, bool transpose_left,
                       bool transpose_right) {
    if (!p.wants(i)) return;
    if (transpose_left && !transpose_right && left.rank() == 2 && right.rank() == 2) {
      p.set_product(i, left, right);
    } else {
      p.set(i, matmul_sum(left, right, {transpose_left, transpose_right},
                          batch_of(p.input(i).shape()), p.where()));
    }
  };
  if (ta) {
    set(0, b, dy, tb, true);
  } else {
    set(0, dy, b, false, !tb);
  }
  if (tb) {
    set(1, dy, a, true, ta);
  } else {
    set(1, a, dy, !ta, false);
  }
}

const Operation matmul_operation{
    .name = "matmul",
    .formula = "y = a·b, ā = ȳ·bᵀ, b̄ = aᵀ·ȳ; likewise ȳ·b etc. for transposed operands",
    .summary = "matrix products over the last two axes, broadcast over the leading axes",
    .compute = compute_matmul,
    .accumulate = compute_floating,
    .accumulates_in_place =
        [](const NodeView& node) {
          const BatchedProduct p(node);
          return visit_floating(node.output().dtype, [&]<class T>(T) {
            return gemm_batch_adds_in_place<T>(p.m, p.n, p.k, p.output_count, p.term_count);
          });
        },
    .vjp = pull_back_matmul,
    .cost =
        [](const NodeView& node) {
          const BatchedProduct all(node);
          return Cost{2.0 * static_cast<double>(all.term_count) * static_cast<double>(all.k) *
                          static_cast<double>(node.output().shape.elements()),
                      bytes_moved(node)};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          const BatchedProduct p(node);
          const ValueType type = node.output();
          if (is_half(type.dtype)) return half_product_workspace(node, threads);
          return visit_floating(type.dtype, [&]<class T>(T) {
            return gemm_batch_workspace<T>(p.m, p.n, p.k, p.output_count, p.term_count, threads);
          });
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::narrow,
};

void check_operand(const Var& x, bool transposed, const Where& where) {
  if (!is_floating(x.dtype())) {
    throw DTypeError(
        "matmul", "takes floating operands, not " + to_string(x.type()) + "; cast it first", where);
  }
  if (x.rank() == 0) {
    throw ShapeError("matmul", "an operand is a scalar; multiply with * instead", where);
  }
  if (x.rank() == 1 && transposed) {
    throw ShapeError("matmul",
                     "a vector of shape " + to_string(x.shape()) +
                         " cannot be transposed; reshape it to a matrix first",
                     where);
  }
}

[[noreturn]] void throw_mismatch(const Var& a, const Var& b, const std::string& reason,
                                 const Where& where) {
  throw ShapeError("matmul",
                   "shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) +
                       " do not multiply: " + reason,
                   where);
}

}  // namespace

Var matmul(const Var& a, const Var& b, const MatmulOptions& options, Where where) {
  const Var pair[] = {a, b};
  common_tape(pair, "matmul", where);
  check_operand(a, options.transpose_a, where);
  check_operand(b, options.transpose_b, where);
  const DType dtype = promote(a.dtype(), b.dtype());
  const auto as_matrix = [&](const Var& x, bool row) {
    const Var same = cast(x, dtype, where);
    if (x.rank() > 1) return same;
    const std::int64_t size = x.shape()[0];
    return reshape(same, row ? Shape{1, size} : Shape{size, 1}, where);
  };
  Var left = as_matrix(a, true);
  const Var right = as_matrix(b, false);
  const std::int64_t k = left.shape().size(options.transpose_a ? -2 : -1);
  const std::int64_t b_rows = right.shape().size(options.transpose_b ? -1 : -2);
  if (k != b_rows) {
    throw_mismatch(a, b,
                   "each row on the left has " + std::to_string(k) +
                       " elements, but each column on the right has " + std::to_string(b_rows) +
                       (options.transpose_a || options.transpose_b
                            ? ", after the requested transposes; they must be equal"
                            : "; they must be equal"),
                   where);
  }
  const Shape batch = broadcast_batches(left.shape(), right.shape(), "matmul", where);

  Var product;
  const std::int64_t m = left.shape().size(options.transpose_a ? -1 : -2);
  const std::int64_t n = right.shape().size(options.transpose_b ? -2 : -1);
  if (!options.transpose_a && batch_of(right.shape()).elements() == 1) {
    // With one matrix on the right, all rows on the left form one product, and so do the adjoints.
    left = reshape(left, {batch_of(left.shape()).elements() * m, k}, where);
    const Shape matrix = right.shape();
    product = matmul_sum(left, reshape(right, {matrix.size(-2), matrix.size(-1)}, where), options,
                         {}, where);
  } else {
    product = matmul_sum(left, right, options, batch, where);
  }
  Shape result = batch;
  if (a.rank() > 1) result.push_back(m);
  if (b.rank() > 1) result.push_back(n);
  return reshape(product, result, where);
}

Var matmul_sum(const Var& a, const Var& b, const MatmulOptions& options, const Shape& batch,
               Where where) {
  const std::int64_t m = a.shape().size(options.transpose_a ? -1 : -2);
  const std::int64_t n = b.shape().size(options.transpose_b ? -2 : -1);
  // If neither operand has a batch axis of the result, one product is computed and repeated.
  const Shape joint = broadcast_batches(a.shape(), b.shape(), "matmul", where);
  Shape made = batch;
  for (int back = 1; back <= batch.rank(); ++back) {
    if (back > joint.rank() || joint.size(-back) == 1) made[batch.rank() - back] = 1;
  }
  const ValueType type{with_matrix(made, m, n), a.dtype()};
  const Var operands[] = {a, b};
  const Var product = a.tape().record(matmul_operation, operands, {&type, 1}, options, where);
  return broadcast_to(product, with_matrix(batch, m, n), where);
}

std::span<const Operation* const> matmul_operations() {
  static const Operation* const family[] = {&matmul_operation};
  return family;
}

}  // namespace palimpsest
