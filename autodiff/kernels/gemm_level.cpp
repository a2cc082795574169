#include <Eigen/Core>

#include "autodiff/kernels/gemm_tiled.h"
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

/// A row of A times rows of B that are adjacent vectors: `Vectors` vectors of the result. The order
/// of additions is that of `matrix_vector`.
template <int Vectors, class T>
void multiply_row(const T* a, std::int64_t a_step, const T* b, std::int64_t ldb, std::int64_t k,
                  const T* addend, T* to) {
  using Eigen::internal::padd, Eigen::internal::pmadd, Eigen::internal::ploadu;
  using Eigen::internal::pset1, Eigen::internal::pstoreu;
  using P = Packet<T>;
  const P zero = pset1<P>(T(0));
  P sums[Vectors];
  for (P& sum : sums) sum = zero;
  for (std::int64_t l = 0; l < k; ++l, a += a_step, b += ldb) {
    const P factor = pset1<P>(*a);
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) sums[j] = pmadd(ploadu<P>(b + j * lanes<T>), factor, sums[j]);
  }
#pragma GCC unroll 8
  for (int j = 0; j < Vectors; ++j) {
    P made = padd(sums[j], zero);
    if (addend != nullptr) made = padd(made, ploadu<P>(addend + j * lanes<T>));
    pstoreu(to + j * lanes<T>, made);
  }
}

/// True for a product of one row whose sums `matrix_vector` would not divide.
template <class T>
bool is_short_row(const Gemm<T>& p) {
  constexpr std::int64_t undivided = 128;
  return p.m == 1 && p.n > 1 && p.n % lanes<T> == 0 && p.k > 0 && p.k < undivided &&
         !p.transpose_b && !p.accumulate && p.alpha == T(1);
}

template <class T>
void multiply_short_row(const Gemm<T>& p) {
  constexpr int vectors = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 4;
  const std::int64_t step = p.transpose_a ? p.lda : 1;
  std::int64_t j = 0;
  const auto addend = [&] { return p.addend == nullptr ? nullptr : p.addend + j; };
  for (; j + vectors * lanes<T> <= p.n; j += vectors * lanes<T>) {
    multiply_row<vectors>(p.a, step, p.b + j, p.ldb, p.k, addend(), p.c + j);
  }
  for (; j < p.n; j += lanes<T>) {
    multiply_row<1>(p.a, step, p.b + j, p.ldb, p.k, addend(), p.c + j);
  }
}

/// Vectors of a product of depth 1, with the roundings of a tile.
template <class T>
struct OuterProduct {
  using P = Packet<T>;

  explicit OuterProduct(const Gemm<T>& product)
      : step(product.transpose_a ? 1 : product.lda), is_scaled(product.alpha != T(1)) {
    alpha = Eigen::internal::pset1<P>(product.alpha);
  }
  P of(const P& a, const P& b) const {
    using Eigen::internal::pmadd, Eigen::internal::pmul, Eigen::internal::pset1;
    const P made = pmadd(a, b, pset1<P>(T(0)));
    return is_scaled ? pmul(alpha, made) : made;
  }

  std::int64_t step;  // from row to row of op(A)
  bool is_scaled;
  P alpha;
};

/// `Vectors` vectors of columns, from column `first` on, in rows `begin` to `end`. B is a row.
template <int Vectors, bool Adds, class T>
void multiply_outer_columns(const Gemm<T>& p, std::int64_t first, std::int64_t begin,
                            std::int64_t end) {
  using Eigen::internal::padd, Eigen::internal::ploadu, Eigen::internal::pset1,
      Eigen::internal::pstoreu;
  using P = Packet<T>;
  const OuterProduct<T> outer(p);
  P b[Vectors];
  for (int v = 0; v < Vectors; ++v) b[v] = ploadu<P>(p.b + first + v * lanes<T>);
  // Everything is read before a row is stored, since stores might change what is read after them.
  const T* a = p.a + begin * outer.step;
  const T* addend = Adds ? p.addend + begin * p.ldc + first : nullptr;
  T* to = p.c + begin * p.ldc + first;
  const std::int64_t stride = p.ldc;
  for (std::int64_t i = begin; i < end; ++i, a += outer.step, to += stride) {
    const P factor = pset1<P>(*a);
    P made[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      made[v] = outer.of(factor, b[v]);
      if constexpr (Adds) made[v] = padd(made[v], ploadu<P>(addend + v * lanes<T>));
    }
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) pstoreu(to + v * lanes<T>, made[v]);
    if constexpr (Adds) addend += stride;
  }
}

/// The last columns, fewer than a vector has.
template <bool Adds, class T>
void multiply_outer_rest(const Gemm<T>& p, std::int64_t first) {
  using Eigen::internal::padd, Eigen::internal::ploadu, Eigen::internal::pstoreu;
  using P = Packet<T>;
  const OuterProduct<T> outer(p);
  T piece[lanes<T>] = {};
  std::copy(p.b + first, p.b + p.n, piece);
  const P b = ploadu<P>(piece);
  for (std::int64_t i = 0; i < p.m; ++i) {
    const std::int64_t at = i * p.ldc + first;
    P made = outer.of(Eigen::internal::pset1<P>(p.a[i * outer.step]), b);
    if constexpr (Adds) {
      std::copy_n(p.addend + at, p.n - first, piece);
      made = padd(made, ploadu<P>(piece));
    }
    pstoreu(piece, made);
    std::copy_n(piece, p.n - first, p.c + at);
  }
}

template <bool Adds, class T>
void multiply_outer(const Gemm<T>& p) {
  constexpr std::int64_t rows_at_once = 32;  // each row may be a page of its own
  constexpr std::int64_t wide = 8 * lanes<T>;
  std::int64_t j = 0;
  for (std::int64_t i = 0; i < p.m; i += rows_at_once) {
    const std::int64_t end = std::min(i + rows_at_once, p.m);
    for (j = 0; j + wide <= p.n; j += wide) multiply_outer_columns<8, Adds>(p, j, i, end);
    for (; j + lanes<T> <= p.n; j += lanes<T>) multiply_outer_columns<1, Adds>(p, j, i, end);
  }
  if (j < p.n) multiply_outer_rest<Adds>(p, j);
}

template <class T>
void gemm(const BlockedGemm<T>& call) {
  const Gemm<T>& p = call.product;
  if (call.packed_b != nullptr && p.k == 1 && !p.accumulate && !p.transpose_b &&
      !call.transpose_c) {
    return p.addend != nullptr ? multiply_outer<true>(p) : multiply_outer<false>(p);
  }
  if (is_short_row(p)) return multiply_short_row(p);
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
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
