#pragma once

#include <cmath>
#include <type_traits>

#include "autodiff/kernels/gemm_tile.h"

/// Registers of small products. A row may be shorter than the largest register.
namespace palimpsest::PALIMPSEST_LEVEL {

namespace simd = Eigen::internal;

/// The register of half the size of P; a number if there is none.
template <class P, class T>
using Smaller = std::conditional_t<std::is_same_v<typename simd::unpacket_traits<P>::half, P>, T,
                                   typename simd::unpacket_traits<P>::half>;

template <class P>
inline constexpr int size_of = simd::unpacket_traits<P>::size;

/// a·b + c, rounded as in registers of any size. Compilers may decide otherwise for single numbers.
template <class P>
P multiply_add(const P& a, const P& b, const P& c) {
#if defined __FMA__ || defined __ARM_FEATURE_FMA
  if constexpr (std::is_floating_point_v<P>) return std::fma(a, b, c);
#endif
  return simd::pmadd(a, b, c);
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
