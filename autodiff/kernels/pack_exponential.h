#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include "autodiff/kernels/pack.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

/// Exponentials and related functions on packs. Every lane uses the same formula over the whole
/// range, including NaN, infinities, signed zeros and subnormal numbers. The polynomials are
/// minimax fits; docs/accuracy.md states the errors. Correctness does not depend on whether
/// products and sums are contracted: exact intermediate results are exact either way.
namespace palimpsest::PALIMPSEST_LEVEL {

template <class T>
using PackBits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// The floating-point format of T, and access to the bits of a pack's lanes.
template <class T>
struct Format {
  using Bits = PackBits<T>;
  using Vector = typename Pack<T>::Vector;
  using Integers [[gnu::vector_size(vector_bytes)]] = Bits;

  static constexpr int fraction_bits = std::numeric_limits<T>::digits - 1;
  static constexpr Bits bias = std::numeric_limits<T>::max_exponent - 1;
  static constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
  static constexpr T infinity = std::numeric_limits<T>::infinity();
  /// Added to a small number, it leaves its rounded integer part in the last bits.
  static constexpr T rounder = T(3) * T(Bits{1} << (fraction_bits - 1));

  static Integers bits(const Vector& x) { return std::bit_cast<Integers>(x); }
  static Vector number(const Integers& bits) { return std::bit_cast<Vector>(bits); }
  static Vector with_sign_of(const Vector& x, const Vector& magnitude) {
    return number(bits(magnitude) | (bits(x) & sign));
  }
};

// The following functions are always inlined: passing packs in memory takes half of the run time.

/// min(x, most); NaN stays. Compilers make two or three instructions of a comparison and a choice.
template <class Vector, class T>
[[gnu::always_inline]] inline Vector capped(const Vector& x, T most) {
  const Vector bound = most - Vector{};
  if constexpr (sizeof(T) == 4) {
#if defined __AVX512F__
    return Vector(_mm512_min_ps(__m512(bound), __m512(x)));
#elif defined __AVX__
    return Vector(_mm256_min_ps(__m256(bound), __m256(x)));
#elif defined __SSE2__
    return Vector(_mm_min_ps(__m128(bound), __m128(x)));
#endif
  }
  return x > bound ? bound : x;
}

/// max(x, least); NaN stays.
template <class Vector, class T>
[[gnu::always_inline]] inline Vector raised(const Vector& x, T least) {
  const Vector bound = least - Vector{};
  if constexpr (sizeof(T) == 4) {
#if defined __AVX512F__
    return Vector(_mm512_max_ps(__m512(bound), __m512(x)));
#elif defined __AVX__
    return Vector(_mm256_max_ps(__m256(bound), __m256(x)));
#elif defined __SSE2__
    return Vector(_mm_max_ps(__m128(bound), __m128(x)));
#endif
  }
  return x < bound ? bound : x;
}

/// coefficients[0] + coefficients[1]·x + …, by Horner's rule. The long polynomials of f64 evaluate
/// even and odd powers separately, which halves the dependency chain.
template <class Vector, class T, int n>
[[gnu::always_inline]] inline Vector polynomial(const Vector& x, const T (&coefficients)[n]) {
  Vector first = coefficients[n - 1] - Vector{};
  if constexpr (sizeof(T) == 4) {
    for (int i = n - 2; i >= 0; --i) first = first * x + coefficients[i];
    return first;
  } else {
    const Vector square = x * x;
    Vector second = coefficients[n - 2] - Vector{};
    for (int i = n - 3; i > 0; i -= 2) {
      first = first * square + coefficients[i];
      second = second * square + coefficients[i - 1];
    }
    if (n % 2 == 0) return first * x + second;
    return second * x + (first * square + coefficients[0]);
  }
}

/// Arguments are clamped to these bounds, beyond which exp(x) underflows or overflows by far.
template <class T>
struct ExponentialRange;

template <>
struct ExponentialRange<float> {
  static constexpr float least = -130, most = 89;
  // log 2 in two parts; the first has so few bits that its products with exponents are exact.
  static constexpr float high = 0x1.62e4p-1F, low = 0x1.7f7d1cp-20F;
  /// (exp(r) − 1 − r)/r² for |r| ≤ log(2)/2
  static constexpr float rest[] = {0x1p-1F, 0x1.55548ep-3F, 0x1.55545cp-5F, 0x1.123bdep-7F,
                                   0x1.6db5p-10F};
};

template <>
struct ExponentialRange<double> {
  static constexpr double least = -800, most = 710;
  static constexpr double high = 0x1.62e42feep-1, low = 0x1.a39ef35793c76p-33;
  static constexpr double rest[] = {
      0x1.000000000000cp-1,  0x1.5555555555561p-3,  0x1.555555554ff96p-5,  0x1.111111110d58dp-7,
      0x1.6c16c185ca0f7p-10, 0x1.a01a01bb1af9ap-13, 0x1.a019963287e06p-16, 0x1.71dddf5165c3fp-19,
      0x1.28b0a59745b9fp-22, 0x1.af864343681bcp-26};
};

/// x = exponent·log 2 + r with |r| ≤ log(2)/2.
template <class T>
struct Reduced {
  typename Format<T>::Vector r;
  typename Format<T>::Vector rounding;  ///< correction to r
  typename Format<T>::Integers exponent;
  typename Format<T>::Vector square_rest;  ///< exp(r) − 1 − r
};

template <class T>
[[gnu::always_inline]] inline Reduced<T> reduce(const typename Format<T>::Vector& x) {
  using F = Format<T>;
  using Range = ExponentialRange<T>;
  const auto shifted = x * std::numbers::log2e_v<T> + F::rounder;
  const auto exponent = shifted - F::rounder;
  const auto left = x - exponent * Range::high;
  const auto r = left - exponent * Range::low;
  return {r, (left - r) - exponent * Range::low,
          F::bits(shifted) - std::bit_cast<typename F::Bits>(F::rounder),
          r * r * polynomial(r, Range::rest)};
}

/// exp(x) as a product of two numbers, neither of which overflows or is subnormal. Multiply a
/// factor that keeps the product in range between the two.
template <class T>
struct ExponentialFactors {
  Pack<T> first;
  Pack<T> second;
};

template <class T>
[[gnu::always_inline]] inline ExponentialFactors<T> factors_of(const Reduced<T>& at) {
  using F = Format<T>;
  // Half of the exponent each. The offset makes the shifted number positive.
  constexpr typename F::Bits positive = 1 << 12;
  const auto half = ((at.exponent + positive) >> 1) - positive / 2;
  return {Pack<T>((at.r + at.square_rest + T(1)) * F::number((half + F::bias) << F::fraction_bits)),
          Pack<T>(F::number((at.exponent - half + F::bias) << F::fraction_bits))};
}

template <class T>
[[gnu::always_inline]] inline ExponentialFactors<T> exponential_factors(const Pack<T>& x) {
  using Range = ExponentialRange<T>;
  return factors_of(reduce<T>(capped(raised(x.lanes(), Range::least), Range::most)));
}

/// Like `exponential_factors`, but faster; for x from `least` to 0.
template <class T>
[[gnu::always_inline]] inline ExponentialFactors<T> falling_factors(
    const typename Format<T>::Vector& x) {
  using F = Format<T>;
  constexpr typename F::Bits shift = sizeof(T) == 4 ? 64 : 512;
  constexpr T second = std::bit_cast<T>((F::bias - shift) << F::fraction_bits);
  const Reduced<T> at = reduce<T>(x);
  const auto scale = F::number((at.exponent + (F::bias + shift)) << F::fraction_bits);
  return {Pack<T>((at.r + at.square_rest + T(1)) * scale), Pack<T>(second)};
}

/// exp(−|x|) as a product of two factors.
template <class T>
[[gnu::always_inline]] inline ExponentialFactors<T> decay_factors(const Pack<T>& x) {
  using F = Format<T>;
  using Range = ExponentialRange<T>;
  return falling_factors<T>(raised(F::number(F::bits(x.lanes()) | F::sign), Range::least));
}

/// exp(−|x|).
template <class T>
[[gnu::always_inline]] inline Pack<T> decay(const Pack<T>& x) {
  const ExponentialFactors<T> factors = decay_factors(x);
  return factors.first * factors.second;
}

/// exp(x) for x ≤ 0; any number above.
template <class T>
[[gnu::always_inline]] inline Pack<T> exponential_below(const Pack<T>& x) {
  const auto factors = falling_factors<T>(raised(x.lanes(), ExponentialRange<T>::least));
  return factors.first * factors.second;
}

template <class T>
[[gnu::always_inline]] inline Pack<T> exponential(const Pack<T>& x) {
  const ExponentialFactors<T> factors = exponential_factors(x);
  return factors.first * factors.second;
}

/// 2ˣ.
template <class T>
[[gnu::always_inline]] inline Pack<T> exp2(const Pack<T>& x) {
  using F = Format<T>;
  using Range = ExponentialRange<T>;
  using Vector = typename F::Vector;
  constexpr T least = Range::least * std::numbers::log2e_v<T>;
  constexpr T most = Range::most * std::numbers::log2e_v<T>;
  const Vector bounded = capped(raised(x.lanes(), least), most);
  const Vector shifted = bounded + F::rounder;
  const Vector r = (bounded - (shifted - F::rounder)) * std::numbers::ln2_v<T>;
  const ExponentialFactors<T> factors = factors_of(
      Reduced<T>{r, Vector{}, F::bits(shifted) - std::bit_cast<typename F::Bits>(F::rounder),
                 r * r * polynomial(r, Range::rest)});
  return factors.first * factors.second;
}

/// exp(scale·x²) as a product of two factors, and |x|, clamped where the exponential is 0.
template <class T>
struct Gaussian {
  Pack<T> distance;
  Pack<T> first;
  Pack<T> second;
};

/// `scale` is −1 or −½. The square is exact to twice the digits of T, since the exponential
/// magnifies its error.
template <class T>
[[gnu::always_inline]] inline Gaussian<T> gaussian(const Pack<T>& x, double scale) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  using Vector = typename F::Vector;
  constexpr Bits lower = (Bits{1} << (F::fraction_bits / 2 + 1)) - 1;
  const T end = sizeof(T) == 4 ? (scale == -1 ? 11 : 15.5F) : (scale == -1 ? 28 : 40);
  const Vector magnitude = F::number(F::bits(x.lanes()) & ~F::sign);
  const Vector distance = capped(magnitude, end);
  const Vector high = F::number(F::bits(distance) & ~lower);
  const Vector square = high * high * T(scale);
  const Vector rest = (distance - high) * (distance + high) * T(scale);
  const Vector exponent = square + rest;
  const Vector lost = (square - exponent) + rest;
  const ExponentialFactors<T> factors = falling_factors<T>(exponent);
  return {Pack<T>(distance), factors.first + factors.first * Pack<T>(lost), factors.second};
}

/// factor·exp(scale·x²), also accurate where the exponential underflows but the product does not.
template <class T>
[[gnu::always_inline]] inline Pack<T> times_gaussian(const Pack<T>& factor, const Pack<T>& x,
                                                     double scale) {
  const Gaussian<T> g = gaussian(x, scale);
  return g.first * factor * g.second;
}

/// factor·exp(x²); infinite where exp(−x²) underflows.
template <class T>
[[gnu::always_inline]] inline Pack<T> over_gaussian(const Pack<T>& factor, const Pack<T>& x) {
  const Gaussian<T> g = gaussian(x, -1);
  return factor / (g.first * g.second);
}

/// exp(x) − 1.
template <class T>
[[gnu::always_inline]] inline Pack<T> expm1(const Pack<T>& x) {
  using F = Format<T>;
  using Vector = typename F::Vector;
  using Range = ExponentialRange<T>;
  constexpr T least = sizeof(T) == 4 ? T(-20) : T(-40);  // expm1 is −1 to the last bit
  constexpr T tiny = std::numeric_limits<T>::epsilon() / 4;
  const Vector lanes = x.lanes();
  const Reduced<T> at = reduce<T>(capped(raised(lanes, least), Range::most));
  // Half of 2^exponent, because 2^exponent may overflow.
  const Vector half = F::number((at.exponent + (F::bias - 1)) << F::fraction_bits);
  const Vector y = ((half - T(0.5)) + half * at.r) + half * (at.square_rest + at.rounding);
  const Vector magnitude = F::number(F::bits(lanes) & ~F::sign);
  return Pack<T>(magnitude < tiny ? lanes : y + y);
}

/// x + x³·P(x²) for |x| below 0.625, else 1 − 2e/(1 + e) with e = exp(−2|x|).
[[gnu::always_inline]] inline Pack<double> tanh(const Pack<double>& x) {
  using F = Format<double>;
  using Vector = F::Vector;
  // (tanh(x) − x)/x³ for |x| ≤ 0.625, as a polynomial in x²
  constexpr double rest[] = {-0x1.5555555555503p-2,  0x1.111111110b0cap-3,  -0x1.ba1ba1b531232p-5,
                             0x1.664f4781fbc28p-6,   -0x1.226e16da753b5p-7, 0x1.d6cf3cb20e199p-9,
                             -0x1.7d696ae79988fp-10, 0x1.336ae8c5a1d18p-11, -0x1.df7a9f042b165p-13,
                             0x1.43e1a515258aap-14,  -0x1.0e3db944c2e96p-16};
  constexpr double most = 20;  // tanh is 1 to the last bit
  const Vector lanes = x.lanes();
  const Vector magnitude = F::number(F::bits(lanes) & ~F::sign);
  const Vector square = magnitude * magnitude;
  const Vector near = magnitude + magnitude * square * polynomial(square, rest);
  const Reduced<double> at = reduce<double>(Vector(capped(magnitude, most) * -2));
  const Vector scale = F::number((at.exponent + F::bias) << F::fraction_bits);
  const Vector e = scale + scale * (at.r + at.square_rest);
  const Vector far = 1 - (e + e) / (e + 1);
  return Pack<double>(F::with_sign_of(lanes, magnitude > 0.625 ? far : near));
}

/// Φ(−x)·exp(x²/2) for x from 0 to 40, where Φ is the normal distribution function.
[[gnu::always_inline]] inline Pack<double> mills_ratio(const Pack<double>& x) {
  constexpr double above[] = {0x1p-1,
                              0x1.a7d1a5aedaa27p-1,
                              0x1.5bd6652ac7862p-1,
                              0x1.6dbb9153e0aafp-2,
                              0x1.0e3efb514f263p-3,
                              0x1.23f0952e272a2p-5,
                              0x1.d250c3159b64p-8,
                              0x1.10366ab84d8ebp-10,
                              0x1.be54d92783451p-14,
                              0x1.d352eb3cba30dp-18,
                              0x1.e06c6091dd4d6p-23};
  constexpr double below[] = {0x1p0,
                              0x1.3a09e7a6be2a8p1,
                              0x1.687c40ca2adadp1,
                              0x1.001525b673ca3p1,
                              0x1.f589de3cc0b67p-1,
                              0x1.646d25a2508bbp-2,
                              0x1.786927041d54bp-4,
                              0x1.28925fe9ec39p-6,
                              0x1.5774acd3dfb04p-9,
                              0x1.1848e60906ac3p-12,
                              0x1.24da114d32f6dp-16,
                              0x1.2d0f8934196b3p-21};
  return Pack<double>(polynomial(x.lanes(), above) / polynomial(x.lanes(), below));
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
