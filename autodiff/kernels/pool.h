#pragma once

#include <array>
#include <cstdint>

namespace palimpsest {

/// Windows in a row over an image x of `size` elements, all of the same form: window k starts at
/// element first + k·stride and has along each of three axes taps[a] elements that lie step[a]
/// apart.
template <class T>
struct WindowRun {
  const T* x;
  std::int64_t size;
  std::int64_t windows;
  std::int64_t first, stride;
  std::array<std::int64_t, 3> taps, step;
};

/// The inner loop of pooling by maxima.
template <class T>
struct PoolKernels {
  /// Of every window the first largest element, and its place in x, which is left out where
  /// `places` is null. A NaN is larger than all.
  void (*maxima)(const WindowRun<T>&, T* largest, std::int64_t* places);
};

}  // namespace palimpsest
