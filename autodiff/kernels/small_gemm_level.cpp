#include "autodiff/kernels/small_gemm.h"
#include "autodiff/kernels/small_registers.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

/// Operands of a product of one row. An element is the same chain of multiply-adds in registers of
/// any size.
template <class T>
struct Row {
  const T* a;
  std::int64_t a_step;
  const T* b;
  std::int64_t ldb;
  std::int64_t k;
  const T* addend;  ///< may be null
  T* to;

  Row from(std::int64_t column) const {
    return {a,          a_step, b + column, ldb, k, addend == nullptr ? nullptr : addend + column,
            to + column};
  }
};

/// `Vectors` registers of the result.
template <class P, int Vectors, class T>
void multiply_vectors(const Row<T>& row) {
  const P zero = simd::pset1<P>(T(0));
  P sums[Vectors];
  for (P& sum : sums) sum = zero;
  const T* a = row.a;
  const T* b = row.b;
  for (std::int64_t l = 0; l < row.k; ++l, a += row.a_step, b += row.ldb) {
    const P factor = simd::pset1<P>(*a);
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      sums[j] = multiply_add(simd::ploadu<P>(b + j * size_of<P>), factor, sums[j]);
  }
#pragma GCC unroll 8
  for (int j = 0; j < Vectors; ++j) {
    P made = simd::padd(sums[j], zero);
    if (row.addend != nullptr)
      made = simd::padd(made, simd::ploadu<P>(row.addend + j * size_of<P>));
    simd::pstoreu(row.to + j * size_of<P>, made);
  }
}

template <class P, class T>
void multiply_columns(const Row<T>& row, std::int64_t n) {
  constexpr int vectors = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 4;
  constexpr std::int64_t size = size_of<P>;
  if constexpr (size > 1) {
    if (n < size) return multiply_columns<Smaller<P, T>>(row, n);
  }
  std::int64_t j = 0;
  for (; j + vectors * size <= n; j += vectors * size) {
    multiply_vectors<P, vectors>(row.from(j));
  }
  for (; j + size <= n; j += size) multiply_vectors<P, 1>(row.from(j));
  if (j < n)
    multiply_vectors<P, 1>(row.from(n - size));  // C is not the addend, see `gemm_writes_once`
}

template <class T>
void multiply_short_row(const Gemm<T>& p, const T* a, const T* b, const T* addend, T* c) {
  const Row<T> row{a, p.transpose_a ? p.lda : 1, b, p.ldb, p.k, addend, c};
  multiply_columns<Packet<T>>(row, p.n);
}

/// A row of A times each of `Rows` rows of B. Sums are made in registers P, and continued by single
/// numbers.
template <class P, int Rows, class T>
void multiply_dots(const T* a, const T* b, std::int64_t ldb, std::int64_t k, const T* addend,
                   T* to) {
  P sums[Rows];
  for (P& sum : sums) sum = simd::pset1<P>(T(0));
  std::int64_t whole = 0;
  for (; whole + size_of<P> <= k; whole += size_of<P>) {
    const P factors = simd::ploadu<P>(a + whole);
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) {
      sums[i] = multiply_add(simd::ploadu<P>(b + i * ldb + whole), factors, sums[i]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) {
    T made = simd::predux(sums[i]) + T(0);
    for (std::int64_t l = whole; l < k; ++l) made = multiply_add(a[l], b[i * ldb + l], made);
    to[i] = addend != nullptr ? made + addend[i] : made;
  }
}

template <class P, class T>
void multiply_rows(const Gemm<T>& p, const T* a, const T* b, const T* addend, T* c) {
  if constexpr (size_of<P> > 1) {
    if (p.k < size_of<P>) return multiply_rows<Smaller<P, T>>(p, a, b, addend, c);
  }
  constexpr int rows = 4;
  const auto addend_at = [&](std::int64_t j) { return addend == nullptr ? nullptr : addend + j; };
  std::int64_t j = 0;
  for (; j + rows <= p.n; j += rows) {
    multiply_dots<P, rows>(a, b + j * p.ldb, p.ldb, p.k, addend_at(j), c + j);
  }
  for (; j < p.n; ++j) multiply_dots<P, 1>(a, b + j * p.ldb, p.ldb, p.k, addend_at(j), c + j);
}

template <class T>
void multiply_short_dots(const Gemm<T>& p, const T* a, const T* b, const T* addend, T* c) {
  T adjacent[longest_dot];
  if (p.transpose_a && p.lda != 1) {
    for (std::int64_t l = 0; l < p.k; ++l) adjacent[l] = a[l * p.lda];
    a = adjacent;
  }
  multiply_rows<Packet<T>>(p, a, b, addend, c);
}

}  // namespace

template <class T>
SmallGemms<T> small_gemms() {
  return {multiply_outer<T>, multiply_short_row<T>, multiply_short_dots<T>,
          multiply_small_matrix<T>};
}

template SmallGemms<float> small_gemms();
template SmallGemms<double> small_gemms();

}  // namespace palimpsest::PALIMPSEST_LEVEL
