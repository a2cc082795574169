#include "autodiff/kernels/small_gemm.h"
#include "autodiff/kernels/small_registers.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

/// A product that reads both matrices in place. Each element is the same chain of multiply-adds as
/// in a tile.
template <class T>
class SmallMatrix {
 public:
  /// The rows of `b`, which is op(B), are `ldb` elements apart.
  SmallMatrix(const Gemm<T>& p, const T* a, const T* b, std::int64_t ldb, const T* addend, T* c)
      : p_(p),
        a_(a),
        b_(b),
        addend_(addend),
        c_(c),
        a_row_(p.transpose_a ? 1 : p.lda),
        a_step_(p.transpose_a ? p.lda : 1),
        ldb_(ldb) {}

  void multiply() const { multiply_with<Packet<T>>(); }

 private:
  /// Where the first register of columns begins, and the second after it. They may overlap.
  struct Places {
    std::int64_t first, next;
  };

  template <class P>
  void multiply_with() const {
    constexpr std::int64_t size = size_of<P>;
    if constexpr (size > 1) {
      if (p_.n < size) return multiply_with<Smaller<P, T>>();
    }
    std::int64_t j = 0;
    for (; j + 2 * size == p_.n || j + 3 * size <= p_.n; j += 2 * size) {
      multiply_columns<P, 2>({j, size});
    }
    if (j + 2 * size <= p_.n) {
      multiply_columns<P, 1>({j, 0});
      j += size;
    }
    if (j == p_.n) return;
    if (j + size == p_.n) return multiply_columns<P, 1>({j, 0});
    // C may be the addend, so both are made before one is stored.
    multiply_columns<P, 2>({j, p_.n - size - j});
  }

  template <class P, int Vectors>
  void multiply_columns(const Places& columns) const {
    constexpr std::int64_t rows = 4;
    std::int64_t i = 0;
    for (; i + rows <= p_.m; i += rows) multiply_block<P, rows, Vectors>(i, columns);
    for (; i < p_.m; ++i) multiply_block<P, 1, Vectors>(i, columns);
  }

  template <class P, int Rows, int Vectors>
  void multiply_block(std::int64_t row, const Places& columns) const {
    P sums[Rows][Vectors];
    for (auto& of_row : sums) {
      for (P& sum : of_row) sum = simd::pset1<P>(T(0));
    }
    const T* a = a_ + row * a_row_;
    const T* b = b_ + columns.first;
    for (std::int64_t l = 0; l < p_.k; ++l, a += a_step_, b += ldb_) {
      P x[Vectors];
      for (int j = 0; j < Vectors; ++j) x[j] = simd::ploadu<P>(b + j * columns.next);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) {
        const P factor = simd::pset1<P>(a[i * a_row_]);
        for (int j = 0; j < Vectors; ++j) sums[i][j] = multiply_add(factor, x[j], sums[i][j]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) {
      const std::int64_t at = (row + i) * p_.ldc + columns.first;
      if (addend_ != nullptr) {
        for (int j = 0; j < Vectors; ++j) {
          sums[i][j] = simd::padd(sums[i][j], simd::ploadu<P>(addend_ + at + j * columns.next));
        }
      }
      for (int j = 0; j < Vectors; ++j) simd::pstoreu(c_ + at + j * columns.next, sums[i][j]);
    }
  }

  const Gemm<T>& p_;
  const T* a_;
  const T* b_;
  const T* addend_;
  T* c_;
  std::int64_t a_row_;
  std::int64_t a_step_;
  std::int64_t ldb_;
};

/// Writes the transpose of B to `to`.
template <class T>
void transpose(const Gemm<T>& p, const T* b, T* to) {
  constexpr std::int64_t size = lanes<T>;
  const std::int64_t columns = p.n / size * size;
  const std::int64_t depth = p.k / size * size;
  for (std::int64_t j = 0; j < columns; j += size) {
    for (std::int64_t l = 0; l < depth; l += size) {
      simd::PacketBlock<Packet<T>, size> block;
      for (int i = 0; i < size; ++i)
        block.packet[i] = simd::ploadu<Packet<T>>(b + (j + i) * p.ldb + l);
      simd::ptranspose(block);
      for (int i = 0; i < size; ++i) simd::pstoreu(to + (l + i) * p.n + j, block.packet[i]);
    }
  }
  for (std::int64_t j = 0; j < p.n; ++j) {
    const T* const from = b + j * p.ldb;
    for (std::int64_t l = j < columns ? depth : 0; l < p.k; ++l) to[l * p.n + j] = from[l];
  }
}

}  // namespace

template <class T>
void multiply_small_matrix(const Gemm<T>& p, const T* a, const T* b, const T* addend, T* c) {
  if (!p.transpose_b) return SmallMatrix<T>(p, a, b, p.ldb, addend, c).multiply();
  T rows[small_matrix_elements];
  transpose(p, b, rows);
  SmallMatrix<T>(p, a, rows, p.n, addend, c).multiply();
}

template void multiply_small_matrix(const Gemm<float>&, const float*, const float*, const float*,
                                    float*);
template void multiply_small_matrix(const Gemm<double>&, const double*, const double*,
                                    const double*, double*);

}  // namespace palimpsest::PALIMPSEST_LEVEL
