#pragma once

#include <cmath>
#include <type_traits>

#include "autodiff/kernels/gemm_tile.h"

/// Registers of small products. A row may be shorter than the largest register.
namespace palimpsest::PALIMPSEST_LEVEL {

/// The register of half the size of P; a number if there is none.
template <class P, class T>
using Smaller =
    std::conditional_t<std::is_same_v<typename Eigen::internal::unpacket_traits<P>::half, P>, T,
                       typename Eigen::internal::unpacket_traits<P>::half>;

/// a·b + c, rounded as in registers of any size. Compilers may decide otherwise for single numbers.
template <class P>
P multiply_add(const P& a, const P& b, const P& c) {
#if defined __FMA__ || defined __ARM_FEATURE_FMA
  if constexpr (std::is_floating_point_v<P>) return std::fma(a, b, c);
#endif
  return Eigen::internal::pmadd(a, b, c);
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
