#pragma once

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <type_traits>
#include <unsupported/Eigen/SpecialFunctions>

#include "autodiff/kernels/pack.h"
#include "autodiff/kernels/pack_exponential.h"

/// Functions of packs that the formulas call, in addition to those of pack_exponential.h. Most are
/// Eigen's, the others the C library's.
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
  return by_lanes([](double number) { return std::erf(number); }, x);
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
  return by_lanes([](T base, T power) { return std::pow(base, power); }, x, exponent);
}
template <class T>
Pack<T> atan2(const Pack<T>& a, const Pack<T>& b) {
  return by_lanes([](T y, T x) { return std::atan2(y, x); }, a, b);
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

/// √x, correctly rounded. Eigen's psqrt refines an estimate once: it is not correctly rounded,
/// differs between processors and gives NaN at ∞.
template <class T>
Pack<T> root(const Pack<T>& x) {
  return by_lanes([](T number) { return std::sqrt(number); }, x);
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
