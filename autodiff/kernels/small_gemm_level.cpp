#include "autodiff/kernels/small_gemm.h"

#include "autodiff/kernels/gemm_tile.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

// The additions of rows and dot products have the order of Eigen's products of a matrix and a
// vector, which compute what is larger.

/// A row of A times rows of B that are adjacent vectors: `Vectors` vectors of the result.
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

template <class T>
void multiply_short_row(const Gemm<T>& p, const T* a, const T* b, const T* addend, T* c) {
  constexpr int vectors = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 4;
  const std::int64_t step = p.transpose_a ? p.lda : 1;
  const auto addend_at = [&](std::int64_t j) { return addend == nullptr ? nullptr : addend + j; };
  std::int64_t j = 0;
  for (; j + vectors * lanes<T> <= p.n; j += vectors * lanes<T>) {
    multiply_row<vectors>(a, step, b + j, p.ldb, p.k, addend_at(j), c + j);
  }
  for (; j < p.n; j += lanes<T>) {
    multiply_row<1>(a, step, b + j, p.ldb, p.k, addend_at(j), c + j);
  }
}

/// A row of A times each of `Rows` rows of B.
template <int Rows, class T>
void multiply_dots(const T* a, const T* b, std::int64_t ldb, std::int64_t k, const T* addend,
                   T* to) {
  using Eigen::internal::pmadd, Eigen::internal::ploadu, Eigen::internal::predux;
  using P = Packet<T>;
  P sums[Rows];
  for (P& sum : sums) sum = Eigen::internal::pset1<P>(T(0));
  for (std::int64_t l = 0; l < k; l += lanes<T>) {
    const P factors = ploadu<P>(a + l);
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) sums[i] = pmadd(ploadu<P>(b + i * ldb + l), factors, sums[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i) {
    const T made = predux(sums[i]) + T(0);
    to[i] = addend != nullptr ? made + addend[i] : made;
  }
}

constexpr std::int64_t longest_dot = 512;

template <class T>
void multiply_short_dots(const Gemm<T>& p, const T* a, const T* b, const T* addend, T* c) {
  constexpr int rows = 4;
  T adjacent[longest_dot];
  if (p.transpose_a && p.lda != 1) {
    for (std::int64_t l = 0; l < p.k; ++l) adjacent[l] = a[l * p.lda];
    a = adjacent;
  }
  const auto addend_at = [&](std::int64_t j) { return addend == nullptr ? nullptr : addend + j; };
  std::int64_t j = 0;
  for (; j + rows <= p.n; j += rows) {
    multiply_dots<rows>(a, b + j * p.ldb, p.ldb, p.k, addend_at(j), c + j);
  }
  for (; j < p.n; ++j) multiply_dots<1>(a, b + j * p.ldb, p.ldb, p.k, addend_at(j), c + j);
}

}  // namespace

template <class T>
SmallGemm<T> small_gemm(const BlockedGemm<T>& call) {
  const Gemm<T>& p = call.product;
  if (p.accumulate) return nullptr;
  const bool would_be_packed = call.packed_size > 0;
  if (p.k == 1 && would_be_packed && !p.transpose_b && !call.transpose_c) return multiply_outer<T>;
  if (p.m != 1 || p.n < 2 || p.k == 0 || p.alpha != T(1)) return nullptr;
  if (p.transpose_b) {
    return p.k <= longest_dot && p.k % lanes<T> == 0 ? multiply_short_dots<T> : nullptr;
  }
  return p.k < short_row && p.n % lanes<T> == 0 ? multiply_short_row<T> : nullptr;
}

template SmallGemm<float> small_gemm(const BlockedGemm<float>&);
template SmallGemm<double> small_gemm(const BlockedGemm<double>&);

}  // namespace palimpsest::PALIMPSEST_LEVEL
