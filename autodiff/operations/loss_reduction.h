#pragma once

#include <cstdint>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How elementwise losses are reduced: to the mean or the sum of all elements, a scalar, or not.
/// `batch_mean` is the sum divided by the size of axis 0.
enum class Reduction : std::uint8_t { mean, sum, none, batch_mean };

/// The mean or the sum of `losses`, or `losses` unchanged. Throws `ShapeError` for the mean over a
/// batch of a scalar or of nothing.
Var reduce_loss(const Var& losses, Reduction reduction, Where where = Where::current());

}  // namespace palimpsest
