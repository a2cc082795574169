#pragma once

#include "autodiff/kernels/gemm.h"

namespace palimpsest::benchmarks {

/// True when oneDNN was there when the suite was built.
bool has_rival();

/// The product by oneDNN's sgemm, on so many threads; `alpha` is 1. Returns false when it refuses.
bool rival_gemm(const Gemm<float>& product, int threads);

}  // namespace palimpsest::benchmarks
