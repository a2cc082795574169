#pragma once

#include <cstdint>

#include "autodiff/kernels/pack_functions.h"

/// Loops over runs of adjacent numbers. They call a generic lambda with packs, and with single
/// numbers for the remainder.
namespace palimpsest::PALIMPSEST_LEVEL {

/// y = f(from...), elementwise; y may alias one of `from`.
template <class T, class F, class... From>
void compute_run(std::int64_t n, F f, T* y, const From*... from) {
  constexpr std::int64_t size = Pack<T>::size;
  std::int64_t i = 0;
  for (; i + size <= n; i += size) f(Pack<T>::load(from + i)...).store(y + i);
  for (; i < n; ++i) y[i] = f(from[i]...);
}

/// The sum of f(from...) over all elements, in their precision.
template <class T, class F, class... From>
T sum_run(std::int64_t n, F f, const T* first, const From*... from) {
  constexpr std::int64_t size = Pack<T>::size;
  Pack<T> even = T(0);
  Pack<T> odd = T(0);
  std::int64_t i = 0;
  for (; i + 2 * size <= n; i += 2 * size) {
    even = even + f(Pack<T>::load(first + i), Pack<T>::load(from + i)...);
    odd = odd + f(Pack<T>::load(first + i + size), Pack<T>::load(from + i + size)...);
  }
  if (i + size <= n) {
    even = even + f(Pack<T>::load(first + i), Pack<T>::load(from + i)...);
    i += size;
  }
  T total = sum_lanes(even + odd);
  for (; i < n; ++i) total += f(first[i], from[i]...);
  return total;
}

/// `sum_run` over blocks of 512 elements, accumulated in f64.
template <class T, class F, class... From>
double sum_blocks(std::int64_t n, F f, const T* first, const From*... from) {
  constexpr std::int64_t block = 512;
  double total = 0;
  for (std::int64_t i = 0; i < n; i += block) {
    total += double{sum_run(n - i < block ? n - i : block, f, first + i, from + i...)};
  }
  return total;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
