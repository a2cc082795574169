#pragma once

#include <cmath>
#include <cstring>

#include "autodiff/kernels/pack_exponential.h"

/// Formulas use these functions for lanes that need another method than the rest. The bits of a
/// lane depend on its own number alone.
namespace palimpsest::PALIMPSEST_LEVEL {

/// Applies `f` lane by lane, in a loop that compilers may vectorize.
template <class T, class F, class... X>
Pack<T> by_lanes(F f, const Pack<T>& first, const X&... rest) {
  alignas(vector_bytes) T y[Pack<T>::size];
  first.store(y);
  const auto apply = [&](const auto&... more) {
    for (int i = 0; i < Pack<T>::size; ++i) y[i] = f(y[i], more[i]...);
  };
  apply(rest.lanes()...);
  return Pack<T>::load(y);
}

/// √x, correctly rounded. Eigen's psqrt refines an estimate once: it is not correctly rounded,
/// differs between processors and gives NaN at ∞.
template <class T>
Pack<T> root(const Pack<T>& x) {
  return by_lanes([](T number) { return std::sqrt(number); }, x);
}

/// True if any lane of a comparison's result is true.
template <class Integers>
[[gnu::always_inline]] inline bool any_of(const Integers& lanes) {
  auto any = lanes[0];
  for (int i = 1; i < int{sizeof(Integers)} / int{sizeof lanes[0]}; ++i) any |= lanes[i];
  return any != 0;
}

/// Replaces the lanes of `y` where `condition` is true by f(x).
template <class T, class Integers, class F>
[[gnu::noinline]] Pack<T> replace_lanes(F f, const Integers& condition, const Pack<T>& x,
                                        const Pack<T>& y) {
  alignas(vector_bytes) T from[Pack<T>::size];
  alignas(vector_bytes) T to[Pack<T>::size];
  x.store(from);
  y.store(to);
  for (int i = 0; i < Pack<T>::size; ++i) {
    if (condition[i] != 0) to[i] = f(from[i]);
  }
  return Pack<T>::load(to);
}

/// Applies a function of f64 packs: to f64 itself, and to f32 with one rounding.
template <class F>
[[gnu::always_inline]] inline Pack<double> in_f64(F f, const Pack<double>& x) {
  return f(x);
}
template <class F>
[[gnu::always_inline]] inline Pack<float> in_f64(F f, const Pack<float>& x) {
  using Half [[gnu::vector_size(vector_bytes / 2)]] = float;
  using Wide = Pack<double>::Vector;
  alignas(vector_bytes) float numbers[Pack<float>::size];
  x.store(numbers);
  for (float* at : {numbers, numbers + Pack<float>::size / 2}) {
    Half half;
    std::memcpy(&half, at, sizeof half);
    const Pack<double> y = f(Pack<double>(__builtin_convertvector(half, Wide)));
    half = __builtin_convertvector(y.lanes(), Half);
    std::memcpy(at, &half, sizeof half);
  }
  return Pack<float>::load(numbers);
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
