#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "autodiff/dtype.h"

/// Conversion between f32 and 16-bit types, with the same bits as the types' own conversions, but
/// written so that compilers vectorize it.
namespace palimpsest::PALIMPSEST_LEVEL {

inline std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - std::uint32_t{condition};
  return (yes & mask) | (no & ~mask);
}

inline float widened(BFloat16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }

inline float widened(Float16 x) {
  const std::uint32_t word = x.bits;
  const std::uint32_t magnitude = (word & 0x7fffu) << 13;
  // Adds the missing 112 to the exponent; the product is exact.
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t bits = select(magnitude >= 0x7c00u << 13, magnitude | 0x7f800000u, scaled);
  return std::bit_cast<float>(((word & 0x8000u) << 16) | bits);
}

/// An f32 whose upper half is the rounded 16-bit number.
inline std::uint32_t rounded_word(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
  return select((word & 0x7fffffffu) > 0x7f800000u, word | 0x400000u, rounded);
}

template <class Half>
  requires std::is_same_v<Half, BFloat16>
BFloat16 narrowed(float x) {
  BFloat16 half;
  half.bits = static_cast<std::uint16_t>(rounded_word(x) >> 16);
  return half;
}

template <class Half>
  requires std::is_same_v<Half, BFloat16>
float rounded(float x) {
  return std::bit_cast<float>(rounded_word(x) & 0xffff0000u);
}

template <class Half>
  requires std::is_same_v<Half, Float16>
Float16 narrowed(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = word & 0x7fffffffu;
  const std::uint32_t tie = (magnitude >> 13) & 1u;
  const std::uint32_t normal = (magnitude + 0xfffu + tie - 0x38000000u) >> 13;
  // Subnormal: from 0.5 on, the last place of an f32 equals that of a subnormal f16.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
  std::uint32_t bits = select(magnitude < 0x38800000u, subnormal, normal);
  bits = select(magnitude >= 0x477ff000u, 0x7c00u, bits);
  bits = select(magnitude > 0x7f800000u, 0x7e00u, bits);
  Float16 half;
  half.bits = static_cast<std::uint16_t>(((word >> 16) & 0x8000u) | bits);
  return half;
}

template <class Half>
  requires std::is_same_v<Half, Float16>
float rounded(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = word & 0x7fffffffu;
  const std::uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u)) & 0xffffe000u;
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const auto subnormal = std::bit_cast<std::uint32_t>(shifted - 0.5f);
  std::uint32_t bits = select(magnitude < 0x38800000u, subnormal, normal);
  bits = select(magnitude >= 0x477ff000u, 0x7f800000u, bits);
  bits = select(magnitude > 0x7f800000u, 0x7fc00000u, bits);
  return std::bit_cast<float>((word & 0x80000000u) | bits);
}

/// Numbers converted at a time.
inline constexpr int half_block = 16;

template <class Half>
void widen_block(const Half* x, float* y) {
  for (int i = 0; i < half_block; ++i) y[i] = widened(x[i]);
}
template <class Half>
void narrow_block(const float* x, Half* y) {
  for (int i = 0; i < half_block; ++i) y[i] = narrowed<Half>(x[i]);
}
template <class Half>
void round_block(float* x) {
  for (int i = 0; i < half_block; ++i) x[i] = rounded<Half>(x[i]);
}

// The processor's f16 conversions return other NaN bits.
#ifdef __AVX512F__

inline __m512i rounded_words(const float* x) {
  const __m512 wide = _mm512_loadu_ps(x);
  const __m512i word = _mm512_castps_si512(wide);
  const __m512i last = _mm512_and_si512(_mm512_srli_epi32(word, 16), _mm512_set1_epi32(1));
  const __m512i half = _mm512_add_epi32(last, _mm512_set1_epi32(0x7fff));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(wide, wide, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(_mm512_add_epi32(word, half), is_nan, word,
                              _mm512_set1_epi32(0x400000));
}
template <>
inline void narrow_block(const float* x, BFloat16* y) {
  const __m256i half = _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded_words(x), 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), half);
}
template <>
inline void round_block<BFloat16>(float* x) {
  const __m512i upper = _mm512_and_si512(rounded_words(x), _mm512_set1_epi32(-0x10000));
  _mm512_storeu_ps(x, _mm512_castsi512_ps(upper));
}

template <>
inline void widen_block(const Float16* x, float* y) {
  const __m512 wide = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  if (_mm512_cmp_ps_mask(wide, wide, _CMP_UNORD_Q) != 0) {
    for (int i = 0; i < half_block; ++i) y[i] = widened(x[i]);
    return;
  }
  _mm512_storeu_ps(y, wide);
}
template <>
inline void narrow_block(const float* x, Float16* y) {
  const __m512 wide = _mm512_loadu_ps(x);
  if (_mm512_cmp_ps_mask(wide, wide, _CMP_UNORD_Q) != 0) {
    for (int i = 0; i < half_block; ++i) y[i] = narrowed<Float16>(x[i]);
    return;
  }
  const __m256i half = _mm512_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), half);
}
template <>
inline void round_block<Float16>(float* x) {
  const __m512 wide = _mm512_loadu_ps(x);
  if (_mm512_cmp_ps_mask(wide, wide, _CMP_UNORD_Q) != 0) {
    for (int i = 0; i < half_block; ++i) x[i] = rounded<Float16>(x[i]);
    return;
  }
  const __m256i half = _mm512_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm512_storeu_ps(x, _mm512_cvtph_ps(half));
}

#elif defined __F16C__

inline __m256i rounded_words(const float* x) {
  const __m256 wide = _mm256_loadu_ps(x);
  const __m256i word = _mm256_castps_si256(wide);
  const __m256i last = _mm256_and_si256(_mm256_srli_epi32(word, 16), _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(last, _mm256_set1_epi32(0x7fff));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(wide, wide, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(word, _mm256_set1_epi32(0x400000));
  return _mm256_blendv_epi8(_mm256_add_epi32(word, half), quiet, is_nan);
}
template <>
inline void narrow_block(const float* x, BFloat16* y) {
  const __m256i low = _mm256_srli_epi32(rounded_words(x), 16);
  const __m256i high = _mm256_srli_epi32(rounded_words(x + 8), 16);
  // Packing interleaves quarters of the two.
  const __m256i half = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), half);
}
template <>
inline void round_block<BFloat16>(float* x) {
  const __m256i upper = _mm256_set1_epi32(-0x10000);
  const __m256i low = _mm256_and_si256(rounded_words(x), upper);
  const __m256i high = _mm256_and_si256(rounded_words(x + 8), upper);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(x), low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(x + 8), high);
}

inline bool has_nan(__m256 low, __m256 high) {
  const __m256 nan =
      _mm256_or_ps(_mm256_cmp_ps(low, low, _CMP_UNORD_Q), _mm256_cmp_ps(high, high, _CMP_UNORD_Q));
  return _mm256_movemask_ps(nan) != 0;
}

template <>
inline void widen_block(const Float16* x, float* y) {
  const auto* const half = reinterpret_cast<const __m128i*>(x);
  const __m256 low = _mm256_cvtph_ps(_mm_loadu_si128(half));
  const __m256 high = _mm256_cvtph_ps(_mm_loadu_si128(half + 1));
  if (has_nan(low, high)) {
    for (int i = 0; i < half_block; ++i) y[i] = widened(x[i]);
    return;
  }
  _mm256_storeu_ps(y, low);
  _mm256_storeu_ps(y + 8, high);
}
template <>
inline void narrow_block(const float* x, Float16* y) {
  const __m256 low = _mm256_loadu_ps(x);
  const __m256 high = _mm256_loadu_ps(x + 8);
  if (has_nan(low, high)) {
    for (int i = 0; i < half_block; ++i) y[i] = narrowed<Float16>(x[i]);
    return;
  }
  auto* const half = reinterpret_cast<__m128i*>(y);
  _mm_storeu_si128(half, _mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(half + 1, _mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT));
}
template <>
inline void round_block<Float16>(float* x) {
  const __m256 low = _mm256_loadu_ps(x);
  const __m256 high = _mm256_loadu_ps(x + 8);
  if (has_nan(low, high)) {
    for (int i = 0; i < half_block; ++i) x[i] = rounded<Float16>(x[i]);
    return;
  }
  _mm256_storeu_ps(x, _mm256_cvtph_ps(_mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT)));
  _mm256_storeu_ps(x + 8, _mm256_cvtph_ps(_mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT)));
}

#endif

}  // namespace palimpsest::PALIMPSEST_LEVEL
