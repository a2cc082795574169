#pragma once

#include "autodiff/kernels/kernels.h"

/// Shared by the files that are compiled once per instruction-set level. PALIMPSEST_LEVEL is the
/// level's name.
namespace palimpsest::PALIMPSEST_LEVEL {

/// All kernels of this level.
Kernels make_kernels();

void add_unary(Kernels& kernels);
void add_adjoint(Kernels& kernels);
void add_binary(Kernels& kernels);
void add_arithmetic(Kernels& kernels);
void add_half(Kernels& kernels);
void add_gemm(Kernels& kernels);
void add_gemm_bf16(Kernels& kernels);  ///< for level v4_bf16, whose only kernel it is
void add_softmax(Kernels& kernels);
void add_convolution(Kernels& kernels);
void add_normalize(Kernels& kernels);
void add_pool(Kernels& kernels);
void add_sort(Kernels& kernels);

}  // namespace palimpsest::PALIMPSEST_LEVEL
