#pragma once

#include <array>
#include <cstdint>

namespace palimpsest {

/// Consecutive windows of equal form over an image x with `size` elements. Window k starts at
/// element first + k·stride. Along axis a it has taps[a] elements that are step[a] apart.
template <class T>
struct WindowRun {
  const T* x;
  std::int64_t size;
  std::int64_t windows;
  std::int64_t first, stride;
  std::array<std::int64_t, 3> taps, step;
};

/// The inner loop of max pooling.
template <class T>
struct PoolKernels {
  /// For every window, the first largest element and its position in x. Positions are not written
  /// if `places` is null. NaN counts as the largest.
  void (*maxima)(const WindowRun<T>&, T* largest, std::int64_t* places);
};

}  // namespace palimpsest
