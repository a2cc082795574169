#pragma once

#include "autodiff/kernels/kernels.h"

/// Products that need neither tiles nor workspace.
namespace palimpsest::PALIMPSEST_LEVEL {

/// As in `Kernels`.
template <class T>
SmallGemm<T> small_gemm(const BlockedGemm<T>& call);

/// A product of depth 1 without a transposed B. Its C is not added to.
template <class T>
void multiply_outer(const Gemm<T>& product, const T* a, const T* b, const T* addend, T* c);

}  // namespace palimpsest::PALIMPSEST_LEVEL
