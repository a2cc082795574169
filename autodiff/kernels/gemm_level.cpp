#include <Eigen/Core>

#include "autodiff/kernels/gemm_tiled.h"
#include "autodiff/kernels/level.h"
#include "autodiff/kernels/small_gemm.h"

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

/// A strided vector.
template <class T>
struct Strided {
  T* data;
  std::int64_t step;
};

/// y += α·M·x for an Eigen matrix M. Works in pieces; strided x and y are copied to the stack,
/// because Eigen would allocate.
template <class T, class M>
void matrix_vector(T alpha, const M& matrix, Strided<const T> x, Strided<T> y) {
  constexpr std::int64_t most = 512;
  using Vector = Eigen::Matrix<T, -1, 1>;
  alignas(64) T x_copy[most];
  alignas(64) T y_copy[most];
  const std::int64_t depth = x.step == 1 ? matrix.cols() : most;
  const std::int64_t rows = y.step == 1 ? matrix.rows() : most;
  for (std::int64_t first = 0; first < matrix.rows(); first += rows) {
    const std::int64_t height = first + rows < matrix.rows() ? rows : matrix.rows() - first;
    T* to = y.data + first * y.step;
    Eigen::Map<Vector> sum(y.step == 1 ? to : y_copy, height);
    if (y.step != 1) sum.setZero();
    for (std::int64_t at = 0; at < matrix.cols(); at += depth) {
      const std::int64_t width = at + depth < matrix.cols() ? depth : matrix.cols() - at;
      const T* from = x.data + at * x.step;
      if (x.step != 1) {
        for (std::int64_t i = 0; i < width; ++i) x_copy[i] = from[i * x.step];
      }
      const Eigen::Map<const Vector> factor(x.step == 1 ? from : x_copy, width);
      sum.noalias() += alpha * (matrix.block(first, at, height, width) * factor);
    }
    if (y.step != 1) {
      for (std::int64_t i = 0; i < height; ++i) to[i * y.step] += y_copy[i];
    }
  }
}

/// y += α·M·x. M's columns, or else its rows, are `lines` of `length` numbers.
template <class T>
void add_product(T alpha, const T* m, std::int64_t lines, std::int64_t length, std::int64_t stride,
                 bool columns, Strided<const T> x, Strided<T> y) {
  const Eigen::OuterStride<> outer(stride);
  if (columns) {
    matrix_vector(alpha, Columns<T>(m, length, lines, outer), x, y);
  } else {
    matrix_vector(alpha, Rows<T>(m, lines, length, outer), x, y);
  }
}

/// Products that are too small or too narrow for tiles.
template <class T>
void multiply_unpacked(const Gemm<T>& p) {
  Result<T> c(p.c, p.m, p.n, Eigen::OuterStride<>(p.ldc));
  if (!p.accumulate) c.setZero();
  if (p.k == 0) return;
  if (p.n == 1) {
    add_product<T>(p.alpha, p.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda,
                   p.transpose_a, {p.b, p.transpose_b ? 1 : p.ldb}, {p.c, p.ldc});
  } else if (p.m == 1) {
    // Computes the transposed product, in which B's rows are columns.
    add_product<T>(p.alpha, p.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb,
                   !p.transpose_b, {p.a, p.transpose_a ? p.lda : 1}, {p.c, 1});
  } else {
    with_operands(p, [&](const auto& a, const auto& b) { c += p.alpha * a.lazyProduct(b); });
  }
}

template <class T>
void gemm(const BlockedGemm<T>& call) {
  const Gemm<T>& p = call.product;
  if (call.packed_b != nullptr && p.k > 0) {
    TiledGemm<T>(call).run();
    return;
  }
  multiply_unpacked(p);
  if (p.addend == nullptr) return;
  for (std::int64_t i = 0; i < p.m * p.ldc; i += p.ldc) {
    for (std::int64_t j = i; j < i + p.n; ++j) p.c[j] += p.addend[j];
  }
}

}  // namespace

void add_gemm(Kernels& kernels) {
  kernels.gemm_f32 = gemm<float>;
  kernels.gemm_f64 = gemm<double>;
  kernels.small_gemms_f32 = small_gemms<float>();
  kernels.small_gemms_f64 = small_gemms<double>();
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
