#pragma once

#include "autodiff/export.h"
#include "autodiff/operations/per_axis.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

struct PoolOptions {
  PerAxis stride = 0;      ///< 0: the kernel size, so that windows do not overlap
  PerAxis padding = 0;     ///< on both sides; at most half of the kernel's extent
  PerAxis dilation = 1;    ///< from one element of a window to the next
  bool ceil_mode = false;  ///< adds windows that begin inside the input but end after the padding
  Channels channels = Channels::first;
};

struct AveragePoolOptions {
  PerAxis stride = 0;
  PerAxis padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< includes the padding's zeros in the divisor
  Channels channels = Channels::first;
};

// Pooling takes (batch, channels, 1 to 3 sizes) or, with `Channels::last`, (batch, 1 to 3 sizes,
// channels), in floating dtypes. It reduces each window to one element. Sizes become
// (size + 2·padding − extent)/stride + 1, rounded down, or up with `ceil_mode`, where the kernel's
// extent is (kernel − 1)·dilation + 1. Throws `ShapeError` for other ranks, for kernels whose
// extent exceeds the padded input and for windows that contain only padding; `ArgumentError` for
// settings out of range; `DTypeError` for other dtypes.

/// The largest element of each window. Padding is never chosen; NaN takes precedence. The
/// derivative flows to the first of equal elements. The adjoint finds its position again from x:
/// most networks keep x anyway, while positions would need extra memory.
Var max_pool(const Var& x, const PerAxis& kernel, const PoolOptions& options = {},
             Where where = Where::current());

/// The mean of each window. The part of a `ceil_mode` window after the padding never counts.
Var average_pool(const Var& x, const PerAxis& kernel, const AveragePoolOptions& options = {},
                 Where where = Where::current());

/// Pooling to given output sizes. Window q of an axis is [⌊q·in/out⌋, ⌈(q + 1)·in/out⌉). Window
/// sizes differ by at most one element, and windows may overlap.
Var adaptive_max_pool(const Var& x, const PerAxis& sizes, Channels channels = Channels::first,
                      Where where = Where::current());
Var adaptive_average_pool(const Var& x, const PerAxis& sizes, Channels channels = Channels::first,
                          Where where = Where::current());

/// One window over all spatial axes, which keep size 1.
Var global_max_pool(const Var& x, Channels channels = Channels::first,
                    Where where = Where::current());
Var global_average_pool(const Var& x, Channels channels = Channels::first,
                        Where where = Where::current());

}  // namespace palimpsest
