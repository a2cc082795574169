#pragma once

#include "autodiff/kernels/gemm.h"

namespace palimpsest::benchmarks {

/// Whether oneDNN was available when the suite was built.
bool has_rival();

/// Computes the product by oneDNN's sgemm on `threads` threads; `alpha` is 1. Returns false when
/// oneDNN refuses.
bool rival_gemm(const Gemm<float>& product, int threads);

}  // namespace palimpsest::benchmarks
