#pragma once

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <type_traits>
#include <unsupported/Eigen/SpecialFunctions>

#include "autodiff/kernels/pack.h"
#include "autodiff/kernels/pack_exponential.h"
#include "autodiff/kernels/pack_lanes.h"
#include "autodiff/kernels/pack_logarithm.h"
#include "autodiff/kernels/pack_special.h"
#include "autodiff/kernels/pack_tabulated.h"
#include "autodiff/kernels/pack_trigonometric.h"
#include "autodiff/kernels/special_functions.h"

/// Functions of packs that the formulas call, in addition to those of the other headers pack_*.h.
/// Most are Eigen's, the others the C library's.
namespace palimpsest::PALIMPSEST_LEVEL {

/// Calls `f` for every number. Not inlined, and without a known count, so that it is not unrolled:
/// the calls take most of the time.
template <class T, class F, class... X>
[[gnu::noinline]] void call_for_each(F f, T* y, const T* end, const X*... more) {
  for (; y != end; ++y, (++more, ...)) *y = f(*y, *more...);
}

/// Applies `f`, which calls a library function, lane by lane. Takes much less code than `by_lanes`.
template <class T, class F>
Pack<T> by_calls(F f, const Pack<T>& x) {
  alignas(vector_bytes) T y[Pack<T>::size];
  x.store(y);
  call_for_each(f, y, y + Pack<T>::size);
  return Pack<T>::load(y);
}
template <class T, class F>
Pack<T> by_calls(F f, const Pack<T>& a, const Pack<T>& b) {
  alignas(vector_bytes) T y[Pack<T>::size];
  alignas(vector_bytes) T other[Pack<T>::size];
  a.store(y);
  b.store(other);
  call_for_each(f, y, y + Pack<T>::size, other);
  return Pack<T>::load(y);
}

/// Eigen's type for a register of T; T itself if Eigen has none.
template <class T>
using EigenPacket = typename Eigen::internal::packet_traits<T>::type;
template <class T>
inline constexpr bool has_eigen_packets = sizeof(EigenPacket<T>) == vector_bytes;

/// Applies one of Eigen's functions of one or two numbers.
template <class Function, class T, class... X>
Pack<T> by_eigen(const Pack<T>& first, const X&... rest) {
  if constexpr (has_eigen_packets<T> && Eigen::internal::functor_traits<Function>::PacketAccess) {
    return Pack<T>(std::bit_cast<typename Pack<T>::Vector>(
        Function().packetOp(std::bit_cast<EigenPacket<T>>(first.lanes()),
                            std::bit_cast<EigenPacket<T>>(rest.lanes())...)));
  } else {
    return by_lanes(Function(), first, rest...);
  }
}

template <class T>
Pack<T> abs(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_abs_op<T>>(x);
}
template <class T>
Pack<T> floor(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_floor_op<T>>(x);
}
template <class T>
Pack<T> ceil(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_ceil_op<T>>(x);
}
template <class T>
Pack<T> rint(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_rint_op<T>>(x);
}
inline Pack<double> erf(const Pack<double>& x) {
  return by_calls([](double number) { return std::erf(number); }, x);
}
template <class T>
Pack<T> trunc(const Pack<T>& x) {
  return choose(x, floor(x), ceil(x));
}
/// Uses the C library in f64, and rounds once for f32.
template <class T>
Pack<T> erfc(const Pack<T>& x) {
  return by_calls([](T number) { return static_cast<T>(std::erfc(double{number})); }, x);
}
inline Pack<float> log_gamma(const Pack<float>& x) {
  return in_f64([](const Pack<double>& wide) { return log_gamma(wide); }, x);
}
inline Pack<float> inverse_erf(const Pack<float>& x) {
  return in_f64([](const Pack<double>& wide) { return inverse_erf(wide); }, x);
}
inline Pack<float> bessel_i(int n, bool scaled, const Pack<float>& x) {
  return in_f64([=](const Pack<double>& wide) { return bessel_i(n, scaled, wide); }, x);
}
template <class T>
Pack<T> polygamma(int order, const Pack<T>& x) {
  if (order == 0) return in_f64([](const Pack<double>& wide) { return digamma(wide); }, x);
  return by_calls([=](T number) { return static_cast<T>(palimpsest::polygamma(order, number)); },
                  x);
}
template <class T>
Pack<T> spherical_bessel_j(int n, bool times_pi, const Pack<T>& x) {
  return by_calls(
      [=](T number) { return static_cast<T>(palimpsest::spherical_bessel_j(n, times_pi, number)); },
      x);
}
template <class T>
Pack<T> sin(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_sin_op<T>>(x);
}
template <class T>
Pack<T> cos(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_cos_op<T>>(x);
}
template <class T>
Pack<T> tan(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_tan_op<T>>(x);
}
template <class T>
Pack<T> asin(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_asin_op<T>>(x);
}
template <class T>
Pack<T> acos(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_acos_op<T>>(x);
}
template <class T>
Pack<T> atan(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_atan_op<T>>(x);
}
template <class T>
Pack<T> sinh(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_sinh_op<T>>(x);
}
template <class T>
Pack<T> cosh(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_cosh_op<T>>(x);
}
template <class T>
Pack<T> asinh(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_asinh_op<T>>(x);
}
template <class T>
Pack<T> acosh(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_acosh_op<T>>(x);
}
template <class T>
Pack<T> atanh(const Pack<T>& x) {
  return by_eigen<Eigen::internal::scalar_atanh_op<T>>(x);
}
/// Uses the C library: Eigen's pow is slower, off by up to 40 units of the last place in f64, and
/// loses the signs of zeros and infinities.
template <class T>
Pack<T> pow(const Pack<T>& x, const std::type_identity_t<Pack<T>>& exponent) {
  return by_calls([](T base, T power) { return std::pow(base, power); }, x, exponent);
}
template <class T>
Pack<T> atan2(const Pack<T>& a, const Pack<T>& b) {
  return by_calls([](T y, T x) { return std::atan2(y, x); }, a, b);
}

template <class T>
Pack<T> hypot(const Pack<T>& a, const Pack<T>& b) {
  return by_calls([](T x, T y) { return std::hypot(x, y); }, a, b);
}
template <class T>
Pack<T> copysign(const Pack<T>& a, const Pack<T>& b) {
  using F = Format<T>;
  return Pack<T>(F::with_sign_of(b.lanes(), F::number(F::bits(a.lanes()) & ~F::sign)));
}

/// a − b·trunc(a/b), with the sign of a. For integers: a if b is 0.
template <class T>
Pack<T> fmod(const Pack<T>& a, const Pack<T>& b) {
  const auto rest = [](T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return y == 0 ? x : y == -1 ? T(0) : T(x % y);
    } else {
      return std::fmod(x, y);
    }
  };
  return by_calls(rest, a, b);
}

/// a − b·floor(a/b), with the sign of b. For integers: a if b is 0.
template <class T>
Pack<T> floor_mod(const Pack<T>& a, const Pack<T>& b) {
  const auto rest = [](T x, T y) {
    T z;
    if constexpr (std::is_integral_v<T>) {
      if (y == 0 || y == -1) return y == 0 ? x : T(0);
      z = T(x % y);
    } else {
      z = std::fmod(x, y);
    }
    return z != 0 && (z < 0) != (y < 0) ? T(z + y) : z;
  };
  return by_calls(rest, a, b);
}

template <class T>
T sum_lanes(const Pack<T>& x) {
  if constexpr (has_eigen_packets<T>) {
    return Eigen::internal::predux(std::bit_cast<EigenPacket<T>>(x.lanes()));
  } else {
    T total = 0;
    for (int i = 0; i < Pack<T>::size; ++i) total += x.lanes()[i];
    return total;
  }
}

/// NaN handling of minima and maxima; integers have no NaN.
template <class T>
inline constexpr int nan_rule = std::is_integral_v<T> ? Eigen::PropagateFast : Eigen::PropagateNaN;

/// The larger and the smaller of two numbers; NaN if either is NaN.
template <class T>
Pack<T> larger(const Pack<T>& a, const Pack<T>& b) {
  return by_eigen<Eigen::internal::scalar_max_op<T, T, nan_rule<T>>>(a, b);
}
template <class T>
Pack<T> smaller(const Pack<T>& a, const Pack<T>& b) {
  return by_eigen<Eigen::internal::scalar_min_op<T, T, nan_rule<T>>>(a, b);
}

/// a/b. For integers: 0 if b is 0, and the lowest integer on overflow.
template <class T>
Pack<T> quotient(const Pack<T>& a, const Pack<T>& b) {
  if constexpr (std::is_integral_v<T>) {
    return by_lanes([](T x, T y) { return y == 0 ? T(0) : y == -1 ? T(-x) : T(x / y); }, a, b);
  } else {
    return a / b;
  }
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
