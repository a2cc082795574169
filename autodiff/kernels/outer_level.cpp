#include <algorithm>

#include "autodiff/kernels/pack.h"
#include "autodiff/kernels/small_gemm.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

/// The operation after a multiplication.
enum class Then { nothing, scale, add };

/// a·b, rounded as in a tile unless it underflows to −0, which is 0 here. `other` is α or the
/// addend.
template <Then then, class P>
P multiplied(const P& a, const P& b, const P& other) {
  // A tile adds to a sum of 0 by a multiply-add, which turns −0 into 0 likewise. Some processors
  // add the addend later if they have multiplied so.
  const P product = a * b + P(0);
  if constexpr (then == Then::scale) return other * product;
  if constexpr (then == Then::add) return product + other;
  return product;
}

/// An outer product.
template <Then then, class T>
class Outer {
 public:
  Outer(const Gemm<T>& p, const T* a, const T* b, const T* addend, T* c)
      : rows_(p.m),
        columns_(p.n),
        step_(p.transpose_a ? 1 : p.lda),
        stride_(p.ldc),
        alpha_(p.alpha),
        a_(a),
        b_(b),
        addend_(addend),
        c_(c) {}

  void multiply() const {
    constexpr std::int64_t rows_at_once = 32;  // each row may be a page of its own
    for (std::int64_t i = 0; i < rows_; i += rows_at_once) {
      multiply_rows<vector_bytes>(i, std::min(i + rows_at_once, rows_));
    }
  }

 private:
  template <int bytes>
  void multiply_rows(std::int64_t begin, std::int64_t end) const {
    constexpr std::int64_t size = Pack<T, bytes>::size;
    if constexpr (bytes > 16) {
      if (columns_ < size) return multiply_rows<bytes / 2>(begin, end);
    }
    if (columns_ < size) return multiply_numbers(begin, end);
    constexpr std::int64_t wide = 8 * size;
    std::int64_t j = 0;
    for (; j + wide == columns_ || j + wide + size <= columns_; j += wide) {
      multiply_columns<bytes, 8>({j, size}, begin, end);
    }
    for (; j + 2 * size <= columns_; j += size) {
      multiply_columns<bytes, 1>({j, size}, begin, end);
    }
    if (j == columns_) return;
    if (j + size == columns_) return multiply_columns<bytes, 1>({j, size}, begin, end);
    // The last two vectors overlap. C may be the addend, so both are made before one is stored.
    multiply_columns<bytes, 2>({j, columns_ - size - j}, begin, end);
  }

  /// α, or elements of the addend.
  template <class P>
  P other(std::int64_t at) const {
    if constexpr (then == Then::add) return P::load(addend_ + at);
    return P(alpha_);
  }

  /// Where the first vector of columns begins, and each of the others after the one before.
  struct Places {
    std::int64_t first, next;
  };
  /// `Vectors` vectors of columns, in rows `begin` to `end`.
  template <int bytes, int Vectors>
  void multiply_columns(const Places& places, std::int64_t begin, std::int64_t end) const {
    using P = Pack<T, bytes>;
    typename P::Vector b[Vectors];
    for (int v = 0; v < Vectors; ++v) {
      std::memcpy(b + v, b_ + places.first + v * places.next, sizeof b[v]);
    }
    const T* a = a_ + begin * step_;
    std::int64_t at = begin * stride_ + places.first;
    for (std::int64_t i = begin; i < end; ++i, a += step_, at += stride_) {
      const P factor(*a);
      typename P::Vector made[Vectors];
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        made[v] = multiplied<then>(factor, P(b[v]), other<P>(at + v * places.next)).lanes();
      }
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) P(made[v]).store(c_ + at + v * places.next);
    }
  }

  /// For fewer columns than the smallest vector has.
  void multiply_numbers(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < columns_; ++j) {
        const std::int64_t at = i * stride_ + j;
        const T other = then == Then::add ? addend_[at] : alpha_;
        c_[at] = multiplied<then, T>(a_[i * step_], b_[j], other);
      }
    }
  }

  std::int64_t rows_, columns_;
  std::int64_t step_;    // from row to row of op(A)
  std::int64_t stride_;  // of C and the addend
  T alpha_;
  const T* a_;
  const T* b_;
  const T* addend_;
  T* c_;
};

}  // namespace

template <class T>
void multiply_outer(const Gemm<T>& p, const T* a, const T* b, const T* addend, T* c) {
  if (addend != nullptr) return Outer<Then::add, T>(p, a, b, addend, c).multiply();
  if (p.alpha == T(1)) return Outer<Then::nothing, T>(p, a, b, nullptr, c).multiply();
  Outer<Then::scale, T>(p, a, b, nullptr, c).multiply();
}

template void multiply_outer(const Gemm<float>&, const float*, const float*, const float*, float*);
template void multiply_outer(const Gemm<double>&, const double*, const double*, const double*,
                             double*);

}  // namespace palimpsest::PALIMPSEST_LEVEL
