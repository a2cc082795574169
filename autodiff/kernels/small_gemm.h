#pragma once

#include "autodiff/kernels/kernels.h"

/// Products that need neither tiles nor workspace.
namespace palimpsest::PALIMPSEST_LEVEL {

template <class T>
SmallGemms<T> small_gemms();

/// As in `SmallGemms`.
template <class T>
void multiply_outer(const Gemm<T>& product, const T* a, const T* b, const T* addend, T* c);
template <class T>
void multiply_small_matrix(const Gemm<T>& product, const T* a, const T* b, const T* addend, T* c);

}  // namespace palimpsest::PALIMPSEST_LEVEL
