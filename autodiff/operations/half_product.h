#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// The kernel of matmul for 16-bit types: adds up in f32 and rounds at the end.
///
/// bf16 is multiplied as it is stored where the processor does that; else operands are widened. Of
/// one large product a part is made at a time, so that what is f32 takes little memory and stays in
/// the cache; parts depend on the shapes alone.
void compute_half_product(const KernelCall& call);
Bytes half_product_workspace(const NodeView& node, int threads);

}  // namespace palimpsest
