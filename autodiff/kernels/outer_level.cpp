#include <algorithm>

#include "autodiff/kernels/pack.h"
#include "autodiff/kernels/small_gemm.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

/// What follows a multiplication.
enum class Then { nothing, scale, add };

/// a·b with the roundings of a tile. `other` is α or the addend.
template <Then then, class T>
Pack<T> multiplied(const Pack<T>& a, const Pack<T>& b, const Pack<T>& other) {
  // A tile adds to a sum of 0, which turns −0 into 0. Its multiply-add rounds like both operations
  // here, but some processors add the addend later if they have multiplied so.
  const Pack<T> product = a * b + Pack<T>(T(0));
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
    constexpr std::int64_t wide = 8 * size;
    std::int64_t j = 0;
    for (std::int64_t i = 0; i < rows_; i += rows_at_once) {
      const std::int64_t end = std::min(i + rows_at_once, rows_);
      for (j = 0; j + wide <= columns_; j += wide) multiply_columns<8>(j, i, end);
      for (; j + size <= columns_; j += size) multiply_columns<1>(j, i, end);
    }
    if (j < columns_) multiply_rest(j);
  }

 private:
  static constexpr std::int64_t size = Pack<T>::size;

  /// α, or elements of the addend.
  Pack<T> other(std::int64_t at) const {
    if constexpr (then == Then::add) return Pack<T>::load(addend_ + at);
    return Pack<T>(alpha_);
  }

  /// `Vectors` vectors of columns, from column `first` on, in rows `begin` to `end`.
  template <int Vectors>
  void multiply_columns(std::int64_t first, std::int64_t begin, std::int64_t end) const {
    typename Pack<T>::Vector b[Vectors];
    std::memcpy(b, b_ + first, sizeof b);
    const T* a = a_ + begin * step_;
    std::int64_t at = begin * stride_ + first;
    for (std::int64_t i = begin; i < end; ++i, a += step_, at += stride_) {
      const Pack<T> factor(*a);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        multiplied<then>(factor, Pack<T>(b[v]), other(at + v * size)).store(c_ + at + v * size);
      }
    }
  }

  /// The last columns, fewer than a vector has.
  void multiply_rest(std::int64_t first) const {
    const std::int64_t count = columns_ - first;
    T piece[size] = {};
    std::copy_n(b_ + first, count, piece);
    const Pack<T> b = Pack<T>::load(piece);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::int64_t at = i * stride_ + first;
      if constexpr (then == Then::add) std::copy_n(addend_ + at, count, piece);
      const Pack<T> other = then == Then::add ? Pack<T>::load(piece) : Pack<T>(alpha_);
      multiplied<then>(Pack<T>(a_[i * step_]), b, other).store(piece);
      std::copy_n(piece, count, c_ + at);
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
