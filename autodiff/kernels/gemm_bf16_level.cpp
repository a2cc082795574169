#include <immintrin.h>

#include <Eigen/Core>
#include <cstring>

#include "autodiff/kernels/gemm_tiled.h"
#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {

/// Multiplies pairs along the depth: one instruction adds two products to each lane's sum. It
/// treats subnormal numbers as 0 and rounds to nearest, regardless of the thread's floating-point
/// modes.
template <>
struct Multiplier<BFloat16> {
  static constexpr int step = 2;
  static __m512 load(const BFloat16* x) { return _mm512_loadu_ps(x); }
  static void store(BFloat16* to, __m512 x) { _mm512_store_ps(to, x); }
  static void pack(const BFloat16* x, std::int64_t next, std::int64_t count, BFloat16* to) {
    const BFloat16* y = x + next;
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
      const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)(x + i)));
      const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)(y + i)));
      _mm512_storeu_si512(to + 2 * i, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
    for (; i + 8 <= count; i += 8) {
      const __m256i low = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(x + i)));
      const __m256i high = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(y + i)));
      _mm256_storeu_si256((__m256i*)(to + 2 * i),
                          _mm256_or_si256(low, _mm256_slli_epi32(high, 16)));
    }
    for (; i < count; ++i) {
      to[2 * i] = x[i];
      to[2 * i + 1] = y[i];
    }
  }
  static __m512 repeat(const BFloat16* x) {
    int pair;
    std::memcpy(&pair, x, sizeof pair);
    return _mm512_castsi512_ps(_mm512_set1_epi32(pair));
  }
  static __m512 multiply_add(__m512 a, __m512 b, __m512 sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};

namespace {

void gemm(const BlockedGemm<BFloat16>& call) {
  const Gemm<BFloat16>& p = call.product;
  if (p.k > 0) {
    TiledGemm<BFloat16>(call).run();
    return;
  }
  for (std::int64_t i = 0; i < p.m * p.ldc; i += p.ldc) {
    for (std::int64_t j = i; j < i + p.n; ++j) {
      if (!p.accumulate) p.c[j] = 0;
      if (p.addend != nullptr) p.c[j] += p.addend[j];
    }
  }
}

}  // namespace

void add_gemm_bf16(Kernels& kernels) { kernels.gemm_bf16 = gemm; }

}  // namespace palimpsest::PALIMPSEST_LEVEL
