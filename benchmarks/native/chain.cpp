#include "benchmarks/native/chain.h"

namespace palimpsest::benchmarks::chain {
namespace {

constexpr std::size_t lanes = 16;
using Vector = float __attribute__((vector_size(4 * lanes), aligned(4), may_alias));

float sum_of(const Vector& x) {
  float sum = 0;
  for (std::size_t i = 0; i < lanes; ++i) sum += x[i];
  return sum;
}

template <bool writes>
Sums sums(const float* from, float* to, std::size_t n, float factor) {
  Vector loss{}, of_factor{};
  const Vector zero{};
  for (std::size_t i = 0; i < n; i += lanes) {
    const Vector x = *reinterpret_cast<const Vector*>(from + i);
    const Vector scaled = x * factor;
    const Vector y = (2 * x + 1) * x - (scaled > 0 ? scaled : zero);
    const Vector dy = 2 * y;
    const Vector of_relu = scaled > 0 ? -dy : zero;
    loss += y * y;
    of_factor += of_relu * x;
    if (writes) *reinterpret_cast<Vector*>(to + i) = dy * (4 * x + 1) + of_relu * factor;
  }
  return {sum_of(loss), sum_of(of_factor)};
}

}  // namespace

Sums by_hand(const float* x, float* dx, std::size_t n, float factor) {
  return dx != nullptr ? sums<true>(x, dx, n, factor) : sums<false>(x, nullptr, n, factor);
}

}  // namespace palimpsest::benchmarks::chain
