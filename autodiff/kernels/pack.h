#pragma once

#include <cstring>

#include "autodiff/kernels/blocks.h"

namespace palimpsest::PALIMPSEST_LEVEL {

#if defined __AVX512F__
constexpr int vector_bytes = 64;
#elif defined __AVX__
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

/// A vector register of numbers, the operand of formulas. It uses the compilers' vector extensions,
/// which compile much faster than Eigen's arrays. A scalar converts to a pack of equal numbers.
/// Each operator is one instruction. Whether several of them in one expression are contracted
/// depends on compiler flags.
template <class T, int bytes = vector_bytes>
class Pack {
 public:
  using Vector [[gnu::vector_size(bytes)]] = T;
  static constexpr int size = bytes / int{sizeof(T)};

  // NOLINTNEXTLINE(google-explicit-constructor)
  Pack(T number) : lanes_(number - Vector{}) {}  // keeps −0: −0 − 0 = −0
  explicit Pack(const Vector& lanes) : lanes_(lanes) {}

  static Pack load(const T* from) {
    Vector lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return Pack(lanes);
  }
  void store(T* to) const { std::memcpy(to, &lanes_, sizeof lanes_); }

  const Vector& lanes() const { return lanes_; }

  friend Pack operator-(const Pack& a) { return Pack(-a.lanes_); }
  friend Pack operator+(const Pack& a, const Pack& b) { return Pack(a.lanes_ + b.lanes_); }
  friend Pack operator-(const Pack& a, const Pack& b) { return Pack(a.lanes_ - b.lanes_); }
  friend Pack operator*(const Pack& a, const Pack& b) { return Pack(a.lanes_ * b.lanes_); }
  friend Pack operator/(const Pack& a, const Pack& b) { return Pack(a.lanes_ / b.lanes_); }

  /// a where c > 0, b elsewhere (also where c is NaN).
  friend Pack choose(const Pack& c, const Pack& a, const Pack& b) {
    return Pack(c.lanes_ > Vector{} ? a.lanes_ : b.lanes_);
  }

 private:
  Vector lanes_;
};

/// Applies `formula`, a function of packs, to a block of numbers.
template <class T, class Formula, class... From>
void compute_block(Formula formula, T* y, const From*... from) {
  for (int i = 0; i < block_size<T>; i += Pack<T>::size) {
    formula(Pack<T>::load(from + i)...).store(y + i);
  }
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
