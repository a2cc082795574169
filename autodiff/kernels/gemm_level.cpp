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
                                                                   p.ldb, p.c, 1, p.ldc, p.alpha,
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

/// y += α·M·x for an Eigen matrix M, in pieces for which x and y, where they are strided, are
/// copied to the stack: Eigen would allocate.
template <class T, class M>
void matrix_vector(T alpha, const M& matrix, const T* x, std::int64_t x_step, T* y,
                   std::int64_t y_step) {
  constexpr std::int64_t most = 512;
  using Vector = Eigen::Matrix<T, -1, 1>;
  alignas(64) T x_copy[most];
  alignas(64) T y_copy[most];
  const std::int64_t depth = x_step == 1 ? matrix.cols() : most;
  const std::int64_t rows = y_step == 1 ? matrix.rows() : most;
  for (std::int64_t first = 0; first < matrix.rows(); first += rows) {
    const std::int64_t height = first + rows < matrix.rows() ? rows : matrix.rows() - first;
    T* to = y + first * y_step;
    Eigen::Map<Vector> sum(y_step == 1 ? to : y_copy, height);
    if (y_step != 1) sum.setZero();
    for (std::int64_t at = 0; at < matrix.cols(); at += depth) {
      const std::int64_t width = at + depth < matrix.cols() ? depth : matrix.cols() - at;
      const T* from = x + at * x_step;
      if (x_step != 1) {
        for (std::int64_t i = 0; i < width; ++i) x_copy[i] = from[i * x_step];
      }
      const Eigen::Map<const Vector> factor(x_step == 1 ? from : x_copy, width);
      sum.noalias() += alpha * (matrix.block(first, at, height, width) * factor);
    }
    if (y_step != 1) {
      for (std::int64_t i = 0; i < height; ++i) to[i * y_step] += y_copy[i];
    }
  }
}

template <class T>
void gemm(const BlockedGemm<T>& call) {
  const Gemm<T>& p = call.product;
  Result<T> c(p.c, p.m, p.n, Eigen::OuterStride<>(p.ldc));
  if (!p.accumulate) c.setZero();
  if (p.k == 0) return;
  if (p.n == 1) {
    with_operands(p, [&](const auto& a, const auto&) {
      matrix_vector(p.alpha, a, p.b, p.transpose_b ? 1 : p.ldb, p.c, p.ldc);
    });
  } else if (p.m == 1) {
    with_operands(p, [&](const auto&, const auto& b) {
      matrix_vector(p.alpha, b.transpose(), p.a, p.transpose_a ? p.lda : 1, p.c, 1);
    });
  } else if (call.packed_a == nullptr) {
    with_operands(p, [&](const auto& a, const auto& b) { c += p.alpha * a.lazyProduct(b); });
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
