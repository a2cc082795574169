#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// The kernel of matmul for 16-bit types. It accumulates in f32 and rounds at the end.
///
/// bf16 is multiplied directly if the processor supports it; otherwise operands are widened. A
/// large product is computed in parts, so that the f32 data is small and stays in the cache. Parts
/// depend on the shapes only.
void compute_half_product(const KernelCall& call);
Bytes half_product_workspace(const NodeView& node, int threads);

}  // namespace palimpsest
