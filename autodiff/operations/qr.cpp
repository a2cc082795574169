#include <Eigen/Householder>
#include <Eigen/QR>
#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/factor_batch.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/triangle.h"

namespace palimpsest {
namespace {

template <class T>
using Rows = Eigen::Map<Eigen::Matrix<T, -1, -1, Eigen::RowMajor>>;
template <class T>
using Columns = Eigen::Map<Eigen::Matrix<T, -1, -1>>;
template <class T>
using Vector = Eigen::Map<Eigen::Matrix<T, -1, 1>>;

Bytes qr_bytes(const Shape& a, Bytes element) { return (a.size(-2) + 2) * a.size(-1) * element; }

/// Householder QR of a copy stored by columns. Q is formed in place from the last reflection to the
/// first. Signs are changed so that R's diagonal is not negative.
template <class T>
void factor(const T* a, T* q_rows, T* r_rows, std::int64_t m, std::int64_t n, T* space) {
  Columns<T> q(space, m, n);
  Vector<T> coefficients(space + m * n, n);
  T* scratch = space + m * n + n;
  q = Eigen::Map<const Eigen::Matrix<T, -1, -1, Eigen::RowMajor>>(a, m, n);
  Eigen::internal::householder_qr_inplace_unblocked(q, coefficients, scratch);
  Rows<T> r(r_rows, n, n);
  r.setZero();
  r.template triangularView<Eigen::Upper>() = q.topRows(n);
  for (std::int64_t k = n; k-- > 0;) {
    const auto reflector = q.col(k).tail(m - k - 1);
    q.bottomRightCorner(m - k, n - k - 1)
        .applyHouseholderOnTheLeft(reflector, coefficients(k), scratch);
    q.col(k).tail(m - k - 1) *= -coefficients(k);
    q(k, k) = T(1) - coefficients(k);
    q.col(k).head(k).setZero();
    if (r(k, k) < T(0)) {
      r.row(k) = -r.row(k);
      q.col(k) = -q.col(k);
    }
  }
  Rows<T>(q_rows, m, n) = q;
}

template <class T>
void compute_qr(const KernelCall& call) {
  const Shape& a = call.input().shape();
  const std::int64_t m = a.size(-2);
  const std::int64_t n = a.size(-1);
  const FactorBatch batch = batch_for(a, false);
  batch.run<T>(
      call, qr_bytes(a, sizeof(T)),
      [&](std::int64_t index, std::span<std::byte> own, Products<T>&) {
        factor(call.input().as<T>() + index * m * n, call.output(0).as<T>() + index * m * n,
               call.output(1).as<T>() + index * n * n, m, n, reinterpret_cast<T*>(own.data()));
        return std::int64_t{-1};
      });
}

// Walter and Lehmann (2010), section 4.3: ā = (q̄ + q·sym(m))·r⁻ᵀ with m = r·r̄ᵀ - q̄ᵀ·q and sym(m)
// the symmetric matrix with m's lower triangle. For 16-bit matrices it is computed in f32, since
// the solve would magnify their rounding. The factors are recomputed for that, because the stored
// ones are rounded.
void pull_back_qr(const Pullback& p) {
  const Where where = p.where();
  const DType dtype = p.input().dtype();
  const DType wide = compute_dtype(dtype);
  const Qr again = wide == dtype ? Qr{p.output(0), p.output(1)} : qr(cast(p.input(), wide), where);
  const Var q = again.q;
  const Var r = again.r;
  Var inner;
  if (p.has_adjoint(1)) {
    inner = matmul(r, cast(p.adjoint(1), wide), {.transpose_b = true}, where);
  }
  if (p.has_adjoint(0)) {
    const Var less = -matmul(cast(p.adjoint(0), wide), q, {.transpose_a = true}, where);
    inner = inner.defined() ? inner + less : less;
  }
  Var sum = matmul(q, tril(inner, 0, where), {}, where) +
            matmul(q, tril(inner, -1, where), {.transpose_b = true}, where);
  if (p.has_adjoint(0)) sum = cast(p.adjoint(0), wide) + sum;
  const Var da = triangular_solve(r, sum, {.upper = true, .transpose = true, .right = true}, where);
  p.set(0, cast(da, dtype));
}

const Operation qr_operation{
    .name = "qr",
    .formula = "a = q·r, ā = (q̄ + q·sym(m))·r⁻ᵀ with m = r·r̄ᵀ - q̄ᵀ·q, sym by its lower triangle",
    .summary = "orthonormal times upper triangular",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_qr<T>(call); });
        },
    .vjp = pull_back_qr,
    .cost =
        [](const NodeView& node) {
          const Shape a = node.input(0).shape;
          const auto m = static_cast<double>(a.size(-2));
          const auto n = static_cast<double>(a.size(-1));
          return Cost{4 * static_cast<double>(batch_of(a).elements()) * n * n * (m - n / 3),
                      static_cast<double>(node.input(0).bytes() + node.output(0).bytes() +
                                          node.output(1).bytes())};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          const Shape a = node.input(0).shape;
          const FactorBatch batch = batch_for(a, false);
          return batch.workspace<float>(threads,
                                        qr_bytes(a, size_of(compute_dtype(node.input(0).dtype))),
                                        [](Products<float>&) {});
        },
};

}  // namespace

std::span<const Operation* const> qr_operations() {
  static const Operation* const family[] = {&qr_operation};
  return family;
}

Qr qr(const Var& a, Where where) {
  check_matrices("qr", a, false, where);
  const Shape shape = a.shape();
  const std::int64_t m = shape.size(-2);
  const std::int64_t n = shape.size(-1);
  if (m < n) {  // a = (b, c) with a square b = q·s: r = (s, qᵀ·c)
    const auto [q, square] = qr(slice(a, -1, {.stop = m}, where), where);
    const Var rest = matmul(q, slice(a, -1, {.start = m}, where), {.transpose_a = true}, where);
    return {q, concat({square, rest}, -1, where)};
  }
  const ValueType types[] = {{shape, a.dtype()}, {with_matrix(batch_of(shape), n, n), a.dtype()}};
  const Var q = a.tape().record(qr_operation, {&a, 1}, types, {}, where);
  return {q, q.output(1)};
}

}  // namespace palimpsest
