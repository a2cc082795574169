#include <Eigen/Core>

#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

using Eigen::ColMajor;
using Eigen::RowMajor;

template <class T>
using Rows =
    Eigen::Map<const Eigen::Matrix<T, -1, -1, RowMajor>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using Columns =
    Eigen::Map<const Eigen::Matrix<T, -1, -1, ColMajor>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using Result =
    Eigen::Map<Eigen::Matrix<T, -1, -1, RowMajor>, Eigen::Unaligned, Eigen::OuterStride<>>;

/// Eigen's blocking with sizes that depend on the product alone and space that somebody else owns.
template <class T>
class Blocking : public Eigen::internal::level3_blocking<T, T> {
 public:
  explicit Blocking(const BlockedGemm<T>& call) {
    this->m_mc = call.columns_block;  // a row-major result is computed as its transpose
    this->m_nc = call.rows_block;
    this->m_kc = call.depth_block;
    this->m_blockA = call.packed_b;
    this->m_blockB = call.packed_a;
  }
};

template <class T, int OrderA, int OrderB>
void blocked(const BlockedGemm<T>& call) {
  const Gemm<T>& p = call.product;
  Blocking<T> blocking(call);
  Eigen::internal::general_matrix_matrix_product<Eigen::Index, T, OrderA, false, T, OrderB, false,
                                                 RowMajor, 1>::run(p.m, p.n, p.k, p.a, p.lda, p.b,
                                                                   p.ldb, p.c, 1, p.ldc, T(1),
                                                                   blocking, nullptr);
}

/// Calls `f` with op(A) and op(B) as Eigen expressions.
template <class T, class F>
void with_operands(const Gemm<T>& p, F f) {
  const Eigen::OuterStride<> a(p.lda);
  const Eigen::OuterStride<> b(p.ldb);
  if (p.transpose_a && p.transpose_b) {
    f(Columns<T>(p.a, p.m, p.k, a), Columns<T>(p.b, p.k, p.n, b));
  } else if (p.transpose_a) {
    f(Columns<T>(p.a, p.m, p.k, a), Rows<T>(p.b, p.k, p.n, b));
  } else if (p.transpose_b) {
    f(Rows<T>(p.a, p.m, p.k, a), Columns<T>(p.b, p.k, p.n, b));
  } else {
    f(Rows<T>(p.a, p.m, p.k, a), Rows<T>(p.b, p.k, p.n, b));
  }
}

template <class T>
void gemm(const BlockedGemm<T>& call) {
  const Gemm<T>& p = call.product;
  Result<T> c(p.c, p.m, p.n, Eigen::OuterStride<>(p.ldc));
  if (!p.accumulate) c.setZero();
  if (p.k == 0) return;
  if (p.m == 1) {
    with_operands(p, [&](const auto& a, const auto& b) { c.row(0).noalias() += a.row(0) * b; });
  } else if (p.n == 1) {
    // A column of a row-major matrix is strided; Eigen would copy it for its own kernel.
    with_operands(p, [&](const auto& a, const auto& b) {
      for (Eigen::Index i = 0; i < p.m; ++i)
        c(i, 0) += a.row(i).transpose().cwiseProduct(b.col(0)).sum();
    });
  } else if (call.packed_a == nullptr) {
    with_operands(p, [&](const auto& a, const auto& b) { c += a.lazyProduct(b); });
  } else if (p.transpose_a && p.transpose_b) {
    blocked<T, ColMajor, ColMajor>(call);
  } else if (p.transpose_a) {
    blocked<T, ColMajor, RowMajor>(call);
  } else if (p.transpose_b) {
    blocked<T, RowMajor, ColMajor>(call);
  } else {
    blocked<T, RowMajor, RowMajor>(call);
  }
}

}  // namespace

void add_gemm(Kernels& kernels) {
  kernels.gemm_f32 = gemm<float>;
  kernels.gemm_f64 = gemm<double>;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
