#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numbers>

#include "autodiff/kernels/pack_exponential.h"
#include "autodiff/kernels/pack_lanes.h"

#if defined __AVX2__ && defined __FMA__ && !defined __AVX512F__
#include "autodiff/kernels/pack_short_tables.h"
#else
#include "autodiff/kernels/pack_activation_tables.h"
#include "autodiff/kernels/pack_tables.h"
#endif

/// Functions of f32 packs from tables. They take about half the time of formulas with exponentials,
/// and have smaller errors.
///
/// A table divides the arguments into 32 intervals, or 8 for AVX2: as many as there are numbers of
/// which an instruction picks one for each lane. Without such an instruction, the numbers of each
/// lane are loaded and transposed. In each interval, the function is a polynomial in the distance
/// from a center. The centers are numbers whose function values are almost f32 numbers.
namespace palimpsest::PALIMPSEST_LEVEL {

using Floats = Format<float>::Vector;

[[gnu::always_inline]] inline Floats magnitude_of(const Floats& x) {
  using F = Format<float>;
  return F::number(F::bits(x) & ~F::sign);
}

#if defined __AVX512F__
[[gnu::always_inline]] inline bool any_below(const Floats& x, float bound) {
  return _mm512_cmp_ps_mask(__m512(x), _mm512_set1_ps(bound), _CMP_LT_OQ) != 0;
}

/// a·b − product, exactly, if `product` is their rounded product.
[[gnu::always_inline]] inline Floats lost_in(const Floats& product, const Floats& a,
                                             const Floats& b) {
  return Floats(_mm512_fmsub_ps(__m512(a), __m512(b), __m512(product)));
}

/// The number of each lane's interval, which is in the last bits of `at`.
[[gnu::always_inline]] inline Floats pick(const TableRow& row, const Floats& at) {
  return Floats(_mm512_permutex2var_epi32(_mm512_loadu_si512(row), __m512i(at),
                                          _mm512_loadu_si512(row + 16)));
}
#elif defined __AVX2__ && defined __FMA__
[[gnu::always_inline]] inline bool any_below(const Floats& x, float bound) {
  return _mm256_movemask_ps(_mm256_cmp_ps(__m256(x), _mm256_set1_ps(bound), _CMP_LT_OQ)) != 0;
}
[[gnu::always_inline]] inline Floats lost_in(const Floats& product, const Floats& a,
                                             const Floats& b) {
  return Floats(_mm256_fmsub_ps(__m256(a), __m256(b), __m256(product)));
}
[[gnu::always_inline]] inline Floats pick(const TableRow& row, const Floats& at) {
  return Floats(_mm256_permutevar8x32_epi32(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)), __m256i(at)));
}
#else
[[gnu::always_inline]] inline bool any_below(const Floats& x, float bound) {
#if defined __SSE2__ && !defined __AVX__
  return _mm_movemask_ps(__m128(x < bound)) != 0;
#else
  return any_of(x < bound);
#endif
}

/// By products of halves, which are exact (T. Dekker, 1971).
[[gnu::always_inline]] inline Floats lost_in(const Floats& product, const Floats& a,
                                             const Floats& b) {
  using F = Format<float>;
  const Floats a_high = F::number(F::bits(a) & ~0xfffU), a_low = a - a_high;
  const Floats b_high = F::number(F::bits(b) & ~0xfffU), b_low = b - b_high;
  return ((a_high * b_high - product) + (a_high * b_low + a_low * b_high)) + a_low * b_low;
}

/// A table with the numbers of an interval side by side: the center and the coefficients.
template <class Table>
struct Intervals {
  static constexpr int terms = std::size(Table::coefficients);
  static constexpr int groups = terms / 4 + 1;
  alignas(16) std::uint32_t numbers[32][4 * groups]{};

  constexpr Intervals() {
    for (int i = 0; i < 32; ++i) {
      numbers[i][0] = Table::centers[i];
      for (int k = 0; k < terms; ++k) numbers[i][k + 1] = Table::coefficients[k][i];
    }
  }
};
template <class Table>
inline constexpr Intervals<Table> intervals;

template <class Vector>
[[gnu::always_inline]] inline void transpose(const Vector (&rows)[4], Vector* columns) {
  const Vector a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Vector b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Vector c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Vector d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  columns[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  columns[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  columns[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  columns[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/// The numbers of each lane's interval, each number in a vector of its own.
template <class Table>
[[gnu::always_inline]] inline auto picked(const Floats& at) {
  constexpr int groups = Intervals<Table>::groups;
  constexpr int lanes = Pack<float>::size;
  struct {
    Floats columns[4 * groups];
  } picked;
  std::uint32_t number[lanes];
  std::memcpy(number, &at, sizeof number);
  for (int group = 0; group < groups; ++group) {
    Floats* columns = picked.columns + 4 * group;
    if constexpr (lanes == 4) {
      Floats rows[4];
      for (int lane = 0; lane < 4; ++lane) {
        std::memcpy(&rows[lane], intervals<Table>.numbers[number[lane] % 32] + 4 * group, 16);
      }
      transpose(rows, columns);
    } else {
      for (int lane = 0; lane < lanes; ++lane) {
        const std::uint32_t* numbers = intervals<Table>.numbers[number[lane] % 32] + 4 * group;
        for (int k = 0; k < 4; ++k) columns[k][lane] = std::bit_cast<float>(numbers[k]);
      }
    }
  }
  return picked;
}
#endif

/// The function for 0 ≤ a ≤ end, or for numbers from `least` to `end`. The last bits of a large sum
/// are the interval's number.
template <class Table>
[[gnu::always_inline]] inline Floats tabulated(const Floats& a, const Floats& magnitude) {
  constexpr int terms = std::size(Table::coefficients);
  const Floats at = a * (magnitude * Table::square + Table::linear) + Format<float>::rounder;
#if defined __AVX2__ && defined __FMA__
  const Floats t = a - pick(Table::centers, at);
  const auto coefficient = [&](int k) { return pick(Table::coefficients[k], at); };
#else
  const auto numbers = picked<Table>(at);
  const Floats t = a - numbers.columns[0];
  const auto coefficient = [&](int k) { return numbers.columns[k + 1]; };
#endif
  Floats y = coefficient(terms - 1);
  for (int k = terms - 2; k >= 0; --k) y = y * t + coefficient(k);
  if constexpr (Table::slope != 0) y = t * Table::slope + y;  // the slope's digits below f32's
  return y;
}

template <class Table>
[[gnu::always_inline]] inline Floats tabulated_magnitude(const Floats& x) {
  const Floats a = capped(magnitude_of(x), Table::end);
  return tabulated<Table>(a, a);
}

inline Pack<float> tanh(const Pack<float>& x) {
  return Pack<float>(
      Format<float>::with_sign_of(x.lanes(), tabulated_magnitude<TanhTable>(x.lanes())));
}

inline Pack<float> erf(const Pack<float>& x) {
  return Pack<float>(
      Format<float>::with_sign_of(x.lanes(), tabulated_magnitude<ErfTable>(x.lanes())));
}

#ifdef __AVX512F__
/// exp(x) for x from −130 to 130: 2^(n/32)·exp(r) with |r| ≤ log(2)/64. The processor multiplies by
/// the power of 2 of whole n/32, also if the product is subnormal.
[[gnu::always_inline]] inline Floats bounded_exponential(const Floats& x) {
  constexpr float thirty_seconds = 0x1.8p18F;  // leaves five bits after the point
  const Floats at = x * std::numbers::log2e_v<float> + thirty_seconds;
  const Floats n = at - thirty_seconds;
  const Floats r = (x - n * ExponentialTable::high) - n * ExponentialTable::low;
  const Floats increase = r * r * (r * ExponentialTable::cubic + ExponentialTable::square) + r;
  const Floats power = pick(ExponentialTable::powers, at);
  return Floats(_mm512_scalef_ps(__m512(power + power * increase), __m512(n)));
}

inline Pack<float> exponential(const Pack<float>& x) {
  return Pack<float>(bounded_exponential(capped(raised(x.lanes(), -130.0F), 130.0F)));
}
inline Pack<float> exponential_below(const Pack<float>& x) {
  return Pack<float>(bounded_exponential(raised(x.lanes(), -130.0F)));
}
inline Pack<float> decay(const Pack<float>& x) {
  const auto negative = Format<float>::bits(x.lanes()) | Format<float>::sign;
  return exponential_below(Pack<float>(Format<float>::number(negative)));
}
#endif

/// factor·exp(exponent + rest) for an exponent of at most 0 and a small rest. The product is
/// rounded once, and once more if it is subnormal.
[[gnu::always_inline]] inline Floats times_exponential(const Floats& factor, const Floats& exponent,
                                                       const Floats& rest) {
  using F = Format<float>;
  const Reduced<float> at = reduce<float>(raised(exponent, ExponentialRange<float>::least));
  const Floats lost = at.rounding + rest;
  const Floats increase = at.r + (at.square_rest + (lost + lost * (at.r + at.square_rest)));
  const Floats scale = F::number((at.exponent + (F::bias + 64)) << F::fraction_bits);
  return (factor + factor * increase) * scale * 0x1p-64F;
}

/// factor·exp(−a²/2).
[[gnu::always_inline]] inline Floats times_half_gaussian(const Floats& factor, const Floats& a) {
  const Floats half = a * -0.5F;
  const Floats exponent = a * half;
  return times_exponential(factor, exponent, lost_in(exponent, a, half));
}

/// `y`, except where x is below `end`: f(−x) there. Few packs have such lanes.
template <class Tail>
[[gnu::noinline]] Floats replaced_below(float end, Floats x, Floats y) {
  return x < end ? Tail::value(-x) : y;
}
template <class Tail>
[[gnu::always_inline]] inline Pack<float> with_tail(float end, const Floats& x, const Floats& y) {
  return Pack<float>(any_below(x, end) ? replaced_below<Tail>(end, x, y) : y);
}

/// A function that is max(x, 0) − T(|x|).
template <class Table, class Tail>
[[gnu::always_inline]] inline Pack<float> rectified(const Pack<float>& x) {
  // From −0, so that results that underflow below 0 are −0.
  const Floats y = raised(x.lanes(), -0.0F) - tabulated_magnitude<Table>(x.lanes());
  return with_tail<Tail>(-Table::end, x.lanes(), y);
}

/// A function that is T(|x|) for x < 0 and 1 − T(|x|) above.
template <class Table, class Tail>
[[gnu::always_inline]] inline Pack<float> step(const Pack<float>& x) {
  const Floats below = tabulated_magnitude<Table>(x.lanes());
  return with_tail<Tail>(-Table::end, x.lanes(), x.lanes() > 0.0F ? 1 - below : below);
}

// The tails are functions of −x.

struct GeluTail {
  static Floats value(const Floats& a) {
    const Floats distance = capped(a, 15.5F);
    const Floats inverse = 1 / distance;
    constexpr float factor[] = {0x1.988452p-2F, -0x1.9881e2p-2F, 0x1.31f012p0F, -0x1.74813ep2F,
                                0x1.0c7f76p5F,  -0x1.10fd5ep7F};  // a·Φ(−a)·exp(a²/2) in 1/a²
    return -times_half_gaussian(polynomial(Floats(inverse * inverse), factor), distance);
  }
};

struct GeluSlopeTail {
  static Floats value(const Floats& a) {
    const Floats distance = capped(a, 15.5F);
    const Floats inverse = 1 / distance;
    constexpr float factor[] = {
        0x1.988454p-2F, -0x1.988574p-2F, 0x1.9910f4p-2F,
        -0x1.39374ep0F, 0x1.95ed7ep2F,   -0x1.e9de1ap4F};  // (φ(a) − Φ(−a)/a)·exp(a²/2) in 1/a²
    return -times_half_gaussian(distance * polynomial(Floats(inverse * inverse), factor), distance);
  }
};

/// The argument of the logistic function in `gelu_tanh`, as a sum.
struct CubicArgument {
  Floats value, rest;
};
[[gnu::always_inline]] inline CubicArgument cubic_argument(const Floats& a) {
  // 2·√(2/π) and 0.044715 times that, each in two parts
  constexpr float linear = 0x1.988454p0F, linear_rest = -0x1.857936p-25F;
  constexpr float cubic = 0x1.2444f2p-4F, cubic_rest = 0x1.49b16ap-29F;
  const Floats square = a * a;
  const Floats product = square * cubic;  // exceeds `linear` in the tail
  const Floats product_rest = lost_in(product, square, cubic - Floats{}) +
                              (lost_in(square, a, a) * cubic + square * cubic_rest);
  const Floats factor = product + linear;
  const Floats rest = (linear - (factor - product)) + (product_rest + linear_rest);
  const Floats value = a * factor;
  return {value, lost_in(value, a, factor) + a * rest};
}

struct GeluTanhTail {
  static Floats value(const Floats& a) {
    const Floats distance = capped(a, 12.0F);
    const auto [exponent, rest] = cubic_argument(distance);
    return -times_exponential(distance, -exponent, -rest);
  }
};

struct GeluTanhSlopeTail {
  static Floats value(const Floats& a) {
    const Floats distance = capped(a, 12.0F);
    const auto [exponent, rest] = cubic_argument(distance);
    // 1 − a·(derivative of the argument)
    constexpr float linear = 0x1.988454p0F, cubic = 0x1.b6676cp-3F, cubic_rest = -0x1.175e200p-32F;
    const Floats square = distance * distance;
    const Floats lost = lost_in(square, distance, distance) * cubic + square * cubic_rest;
    const Floats slope = square * cubic + (lost + linear);
    const Floats factor = 1 - distance * slope;
    return times_exponential(factor, -exponent, -rest);
  }
};

struct SiluTail {
  static Floats value(const Floats& a) {
    const Floats distance = capped(a, 130.0F);
    return -times_exponential(distance, -distance, Floats{});
  }
};

struct SiluSlopeTail {
  static Floats value(const Floats& a) {
    const Floats distance = capped(a, 130.0F);
    return times_exponential(1 - distance, -distance, Floats{});
  }
};

inline Pack<float> gelu_of(const Pack<float>& x) { return rectified<GeluTable, GeluTail>(x); }
inline Pack<float> gelu_slope(const Pack<float>& x) {
  return step<GeluSlopeTable, GeluSlopeTail>(x);
}
inline Pack<float> gelu_tanh_of(const Pack<float>& x) {
  return rectified<GeluTanhTable, GeluTanhTail>(x);
}
inline Pack<float> gelu_tanh_slope(const Pack<float>& x) {
  return step<GeluTanhSlopeTable, GeluTanhSlopeTail>(x);
}
inline Pack<float> silu_of(const Pack<float>& x) { return rectified<SiluTable, SiluTail>(x); }
inline Pack<float> silu_slope(const Pack<float>& x) {
  return step<SiluSlopeTable, SiluSlopeTail>(x);
}

struct SigmoidTail {
  static Floats value(const Floats& a) { return exponential_below(Pack<float>(-a)).lanes(); }
};

inline Pack<float> logistic_of(const Pack<float>& x) { return step<SigmoidTable, SigmoidTail>(x); }
inline Pack<float> softplus_of(const Pack<float>& x) {
  const Floats y = raised(x.lanes(), 0.0F) + tabulated_magnitude<SoftplusTable>(x.lanes());
  return with_tail<SigmoidTail>(-SoftplusTable::end, x.lanes(), y);
}

struct MishTail {
  static Floats value(const Floats& a) {
    const Floats distance = capped(a, 130.0F);
    const Floats d = exponential_below(Pack<float>(-distance)).lanes();
    return -times_exponential(distance - distance * (d * 0.5F), -distance, Floats{});
  }
};

struct MishSlopeTail {
  static Floats value(const Floats& a) {
    const Floats distance = capped(a, 130.0F);
    const Floats d = exponential_below(Pack<float>(-distance)).lanes();
    return times_exponential(1 - distance + d * (distance - 0.5F), -distance, Floats{});
  }
};

inline Pack<float> mish_of(const Pack<float>& x) {
  const Floats bounded = capped(raised(x.lanes(), MishTable::least), MishTable::end);
  const Floats y = tabulated<MishTable>(bounded, magnitude_of(bounded));
  return with_tail<MishTail>(MishTable::least, x.lanes(), x.lanes() * y);
}
inline Pack<float> mish_slope(const Pack<float>& x) {
  const Floats bounded = capped(raised(x.lanes(), MishSlopeTable::least), MishSlopeTable::end);
  const Floats y = tabulated<MishSlopeTable>(bounded, magnitude_of(bounded));
  return with_tail<MishSlopeTail>(MishSlopeTable::least, x.lanes(), y);
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
