#include "autodiff/kernels/half.h"

#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <class Half>
void widen(const Half* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + half_block <= n; i += half_block) widen_block(x + i, y + i);
  for (; i < n; ++i) y[i] = widened(x[i]);
}

template <class Half>
void narrow(const float* x, Half* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + half_block <= n; i += half_block) narrow_block(x + i, y + i);
  for (; i < n; ++i) y[i] = narrowed<Half>(x[i]);
}

template <class Half>
void round(float* x, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + half_block <= n; i += half_block) round_block<Half>(x + i);
  for (; i < n; ++i) x[i] = rounded<Half>(x[i]);
}

template <class Half>
constexpr HalfKernels<Half> kernels_of{widen<Half>, narrow<Half>, round<Half>};

}  // namespace

void add_half(Kernels& kernels) {
  kernels.bf16 = kernels_of<BFloat16>;
  kernels.f16 = kernels_of<Float16>;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
