#pragma once

#include "autodiff/kernels/pack_exponential.h"

/// Logarithms of packs, with the same guarantees as pack_exponential.h.
namespace palimpsest::PALIMPSEST_LEVEL {

template <class T>
struct LogarithmRange;

template <>
struct LogarithmRange<float> {
  /// (log(1 + f) − f + f²/2)/f³ for 1 + f from √½ to √2
  static constexpr float rest[] = {0x1.555546p-2F,  -0x1.ffffeep-3F, 0x1.99a546p-3F,
                                   -0x1.5562e4p-3F, 0x1.2332bp-3F,   -0x1.fb430ep-4F,
                                   0x1.e6516ep-4F,  -0x1.e2eadep-4F, 0x1.1b426ep-4F};
};

template <>
struct LogarithmRange<double> {
  /// (log((1 + s)/(1 − s)) − 2s)/s³ as a polynomial in s²
  static constexpr double rest[] = {
      0x1.555555555558fp-1, 0x1.9999999980c54p-2, 0x1.24924941476ap-2, 0x1.c71c527f57bc8p-3,
      0x1.746629a7d314ap-3, 0x1.39a3a4d115139p-3, 0x1.2ef3ed8744004p-3};
};

/// x = (1 + f)·2^exponent for x > 0, with 1 + f from √½ to √2.
template <class T>
struct Split {
  typename Format<T>::Vector f;
  typename Format<T>::Vector exponent;
  typename Format<T>::Integers biased;
};

template <class T>
[[gnu::always_inline]] inline Split<T> split(const typename Format<T>::Vector& x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  constexpr Bits root_half = std::bit_cast<Bits>(std::numbers::sqrt2_v<T> / 2);
  constexpr Bits fraction = (Bits{1} << F::fraction_bits) - 1;
  constexpr T whole = T(Bits{1} << F::fraction_bits);
  const auto shifted = F::bits(x) + (std::bit_cast<Bits>(T(1)) - root_half);
  const auto biased = shifted >> F::fraction_bits;
  return {F::number((shifted & fraction) + root_half) - T(1),
          F::number(biased | std::bit_cast<Bits>(whole)) - (whole + T(F::bias)), biased};
}

/// log(1 + f) − f.
template <class T>
[[gnu::always_inline]] inline typename Format<T>::Vector rest_of_logarithm(
    const typename Format<T>::Vector& f) {
  using Vector = typename Format<T>::Vector;
  const Vector half_square = f * f * T(0.5);
  if constexpr (sizeof(T) == 4) {
    return f * f * f * polynomial(f, LogarithmRange<T>::rest) - half_square;
  } else {
    const Vector s = f / (f + T(2));
    const Vector z = s * s;
    return s * (half_square + z * polynomial(z, LogarithmRange<T>::rest)) - half_square;
  }
}

/// log(1 + f) + exponent·log 2.
template <class T>
[[gnu::always_inline]] inline typename Format<T>::Vector join(
    const typename Format<T>::Vector& f, const typename Format<T>::Vector& exponent) {
  using Range = ExponentialRange<T>;
  using Vector = typename Format<T>::Vector;
  const Vector rest = rest_of_logarithm<T>(f);
  const Vector sum = exponent * Range::high + f;
  const Vector lost = (exponent * Range::high - sum) + f;
  return sum + (rest + (exponent * Range::low + lost));
}

/// `y`, the logarithm of x, if x is positive and finite; otherwise the result for the special
/// values.
template <class T>
[[gnu::always_inline]] inline Pack<T> logarithm_of(const typename Format<T>::Vector& x,
                                                   const typename Format<T>::Vector& y) {
  using Vector = typename Format<T>::Vector;
  constexpr T infinity = Format<T>::infinity;
  constexpr T none = std::numeric_limits<T>::quiet_NaN();
  const Vector finite = x < infinity ? y : x;
  return Pack<T>(x > T(0) ? finite : (x == T(0) ? -infinity - Vector{} : none - Vector{}));
}

/// `split` for all x > 0, also subnormal ones, where `biased` is not valid.
template <class T>
[[gnu::always_inline]] inline Split<T> split_positive(const typename Format<T>::Vector& x) {
  using Vector = typename Format<T>::Vector;
  constexpr int digits = std::numeric_limits<T>::digits;
  const auto tiny = x < std::numeric_limits<T>::min();
  Split<T> parts = split<T>(tiny ? x * T(std::int64_t{1} << digits) : x);
  parts.exponent -= tiny ? T(digits) - Vector{} : Vector{};
  return parts;
}

template <class T>
[[gnu::always_inline]] inline Pack<T> logarithm(const Pack<T>& x) {
  const Split<T> parts = split_positive<T>(x.lanes());
  return logarithm_of<T>(x.lanes(), join<T>(parts.f, parts.exponent));
}

/// Logarithms of 2 and of e to another base, each as the sum of two numbers. The first of them have
/// so few bits that their products with exponents, and with half of the digits of a number, are
/// exact.
template <class T, int base>
struct LogarithmScales;
template <>
struct LogarithmScales<float, 2> {
  static constexpr float two = 1, two_low = 0;
  static constexpr float e = 0x1.714p0F, e_low = 0x1.47652cp-12F;
};
template <>
struct LogarithmScales<float, 10> {
  static constexpr float two = 0x1.344p-2F, two_low = 0x1.3509f8p-18F;
  static constexpr float e = 0x1.bcap-2F, e_low = 0x1.7b1526p-14F;
};
template <>
struct LogarithmScales<double, 2> {
  static constexpr double two = 1, two_low = 0;
  static constexpr double e = 0x1.715476p0, e_low = 0x1.4ae0bf85ddf44p-26;
};
template <>
struct LogarithmScales<double, 10> {
  static constexpr double two = 0x1.34413509f78p-2, two_low = 0x1.fef311f12b358p-46;
  static constexpr double e = 0x1.bcb7b1p-2, e_low = 0x1.49b9438ca9aaep-28;
};

/// The logarithm to base 2 or 10.
template <int base, class T>
[[gnu::always_inline]] inline Pack<T> logarithm_to(const Pack<T>& x) {
  using F = Format<T>;
  using Vector = typename F::Vector;
  using Scales = LogarithmScales<T, base>;
  constexpr typename F::Bits lower = (typename F::Bits{1} << (F::fraction_bits / 2 + 1)) - 1;
  const auto [f, exponent, biased] = split_positive<T>(x.lanes());
  const Vector high = F::number(F::bits(f) & ~lower);
  const Vector first = exponent * Scales::two;
  const Vector second = high * Scales::e;
  const Vector sum = first + second;
  const Vector lost = (first - sum) + second;
  const Vector rest = rest_of_logarithm<T>(f) * Scales::e + (f - high) * Scales::e;
  const Vector low = exponent * Scales::two_low + (f + rest_of_logarithm<T>(f)) * Scales::e_low;
  return logarithm_of<T>(x.lanes(), sum + (rest + (low + lost)));
}

template <class T>
Pack<T> log2(const Pack<T>& x) {
  return logarithm_to<2>(x);
}
template <class T>
Pack<T> log10(const Pack<T>& x) {
  return logarithm_to<10>(x);
}

/// log(1 + x).
template <class T>
[[gnu::always_inline]] inline Pack<T> log1p(const Pack<T>& x) {
  using F = Format<T>;
  using Vector = typename F::Vector;
  constexpr T large = T(std::int64_t{1} << 60);
  const Vector lanes = x.lanes();
  const Vector sum = lanes + T(1);
  // The rounding error of the sum, scaled like f.
  const Vector back = sum - T(1);
  const Vector lost = (T(1) - (sum - back)) + (lanes - back);
  const Split<T> parts = split<T>(sum);
  const Vector scale = F::number((2 * F::bias - parts.biased) << F::fraction_bits);
  const Vector f = parts.f + (lanes < large ? lost * scale : Vector{});
  const Pack<T> y = logarithm_of<T>(sum, join<T>(f, parts.exponent));
  return Pack<T>(lanes == T(0) ? lanes : y.lanes());
}

template <class T>
struct FractionRange;

/// (log((1 + s)/(1 − s)) − 2s)/s³ for 0 ≤ s ≤ ⅓, as a polynomial in s²
template <>
struct FractionRange<float> {
  static constexpr float rest[] = {0x1.5555p-1F, 0x1.99d27cp-2F, 0x1.1eb618p-2F, 0x1.1ef858p-2F};
};

template <>
struct FractionRange<double> {
  static constexpr double rest[] = {
      0x1.5555555555535p-1, 0x1.99999999a083ap-2, 0x1.2492492085a2dp-2, 0x1.c71c741f78c49p-3,
      0x1.745cb39def04p-3,  0x1.3b1de2f1a4a8dp-3, 0x1.10676b0da57a6p-3, 0x1.efdd5e4ae4c5bp-4,
      0x1.559ce99e0261bp-4, 0x1.5c89cf020a1fdp-3};
};

/// log(1 + x) for x from 0 to 1; faster than `log1p`.
template <class T>
[[gnu::always_inline]] inline Pack<T> log1p_of_fraction(const Pack<T>& x) {
  using Vector = typename Format<T>::Vector;
  const Vector f = x.lanes();
  const Vector half_square = f * f * T(0.5);
  const Vector s = f / (f + T(2));
  const Vector z = s * s;
  return Pack<T>(f - (half_square - s * (half_square + z * polynomial(z, FractionRange<T>::rest))));
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
