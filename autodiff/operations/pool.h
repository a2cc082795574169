#pragma once

#include "autodiff/operations/per_axis.h"
#include "autodiff/var.h"

namespace palimpsest {

struct PoolOptions {
  PerAxis stride = 0;      ///< 0: as the kernel, so that windows do not overlap
  PerAxis padding = 0;     ///< on either side; at most half of what the kernel spans
  PerAxis dilation = 1;    ///< from one element of a window to the next
  bool ceil_mode = false;  ///< also the windows that begin inside and end behind the padding
  Channels channels = Channels::first;
};

struct AveragePoolOptions {
  PerAxis stride = 0;
  PerAxis padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< divide by the padding's elements too, which are zeros
  Channels channels = Channels::first;
};

// Pooling takes (batch, channels, 1 to 3 sizes) or, with `Channels::last`, (batch, 1 to 3 sizes,
// channels), in floating dtypes. It makes of every window one
// element: sizes become (size + 2·padding − span)/stride + 1, rounded down, or up with `ceil_mode`,
// where a kernel spans (kernel − 1)·dilation + 1 elements. Throws `ShapeError` for other ranks, for
// kernels that span more than the padded input and for windows that hold padding only,
// `ArgumentError` for settings out of range, `DTypeError` for other dtypes.

/// The largest element of each window; padding is never it, NaN always. The derivative goes to the
/// first of equal ones. Its place is found again from x when it is needed: x is kept in most
/// networks anyway, places would be kept besides.
Var max_pool(const Var& x, const PerAxis& kernel, const PoolOptions& options = {},
             Where where = Where::current());

/// The mean of each window. What of a window of `ceil_mode` lies behind the padding never counts.
Var average_pool(const Var& x, const PerAxis& kernel, const AveragePoolOptions& options = {},
                 Where where = Where::current());

/// Pooling to given sizes: window q of an axis is [q·in/out rounded down, (q + 1)·in/out rounded
/// up), so windows differ by at most one element and may overlap.
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
