#pragma once

#include <span>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Gradients;

/// Scales all gradients in place so that their joint 2-norm is at most `most`. Returns the norm
/// before. If that is NaN, nothing is scaled. The bits do not depend on the number of threads.
/// Throws `ArgumentError` unless `most` is positive.
double clip_by_norm(const Gradients& gradients, double most);
/// Likewise for tensors of floating dtypes.
double clip_by_norm(std::span<const Tensor> gradients, double most);

}  // namespace palimpsest
