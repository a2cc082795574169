#pragma once

#include "autodiff/export.h"
#include "autodiff/operations/per_axis.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

enum class Interpolation : std::uint8_t {
  nearest,  ///< one element: ⌊q·in/out⌋ for resizing; the nearest for a grid, with ties to even
  linear,   ///< between the two nearest along each axis; bilinear for images
  cubic,    ///< between the four nearest along each axis (Keys, 1981, with −3/4); only for resizing
};

struct ResizeOptions {
  Interpolation interpolation = Interpolation::nearest;
  /// For linear and cubic interpolation: aligns the centres of the outermost elements; otherwise
  /// their outer edges.
  bool align_corners = false;

  bool operator==(const ResizeOptions&) const = default;
};

/// Resizes x (batch, channels, 1 to 3 spatial axes) to (batch, channels, `sizes`). Shrinking does
/// not smooth. Throws `ShapeError` for other ranks and for empty axes, `DTypeError` for dtypes that
/// are not floating, `ArgumentError` for sizes below 1.
Var resize(const Var& x, const PerAxis& sizes, const ResizeOptions& options = {},
           Where where = Where::current());
/// `resize`, by the name that PyTorch uses.
inline Var interpolate(const Var& x, const PerAxis& sizes, const ResizeOptions& options = {},
                       Where where = Where::current()) {
  return resize(x, sizes, options, where);
}
/// `resize` by whole factors, at least 1. Throws as `resize` does.
Var upsample(const Var& x, const PerAxis& factors, const ResizeOptions& options = {},
             Where where = Where::current());

/// Rearranges (batch, channels·r², height, width) to (batch, channels, height·r, width·r). Channel
/// c·r² + i·r + j goes to the positions (r·h + i, r·w + j). Any dtype. Throws `ShapeError` for
/// other ranks and when r² does not divide the channels, `ArgumentError` for r below 1.
Var pixel_shuffle(const Var& x, std::int64_t r, Where where = Where::current());
/// The inverse of `pixel_shuffle`. Throws `ShapeError` when r does not divide height and width.
Var pixel_unshuffle(const Var& x, std::int64_t r, Where where = Where::current());

/// Channels of x (batch, channels, …) in another order: as a matrix (groups, channels/groups), they
/// are transposed. Any dtype. Throws `ShapeError` for fewer than two axes, `ArgumentError` unless
/// `groups` divides the channels.
Var channel_shuffle(const Var& x, std::int64_t groups, Where where = Where::current());

enum class GridPadding : std::uint8_t {
  zeros,   ///< the image is surrounded by zeros
  border,  ///< positions outside are moved to the edge
};

struct GridSampleOptions {
  Interpolation interpolation = Interpolation::linear;
  GridPadding padding = GridPadding::zeros;
  /// −1 and 1 are the centres of the outermost elements; otherwise their outer edges.
  bool align_corners = false;
};

/// y(b, c, q) = x(b, c, ·) interpolated at the position grid(b, q) = (across, down). −1 and 1 are
/// the image's ends, as `align_corners` says. A NaN position counts as far outside.
///
/// x is (batch, channels, height, width), grid (batch, height', width', 2), y (batch, channels,
/// height', width'). Or x is (batch, channels, depth, height, width), grid (batch, depth', height',
/// width', 3) with positions (across, down, deep), and interpolation is trilinear. Both are
/// promoted to a common dtype. Throws `ShapeError` when the shapes do not fit, `DTypeError` unless
/// that dtype is floating, `ArgumentError` for cubic interpolation.
///
/// Differentiable in both operands, to any order. For nearest interpolation the derivative with
/// respect to the grid is 0. At an element, it is that towards larger positions. It is 0 at the
/// edge to which `GridPadding::border` moves positions, and outside. The second derivative with
/// respect to the grid is recorded as gathers and needs the memory of four results, or of eight
/// with a depth.
Var grid_sample(const Var& x, const Var& grid, const GridSampleOptions& options = {},
                Where where = Where::current());

struct PoolOptions {
  PerAxis stride = 0;      ///< 0: the kernel size, so that windows do not overlap
  PerAxis padding = 0;     ///< on both sides; at most half of the kernel's extent
  PerAxis dilation = 1;    ///< from one element of a window to the next
  bool ceil_mode = false;  ///< adds windows that begin inside the input but end after the padding
  Channels channels = Channels::first;
};

/// `stride`, `padding`, `ceil_mode` and `channels` as in `PoolOptions`.
struct AveragePoolOptions {
  PerAxis stride = 0;
  PerAxis padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< includes the padding's zeros in the divisor
  Channels channels = Channels::first;
};

// Pooling takes (batch, channels, 1 to 3 spatial axes) or, with `Channels::last`, (batch, 1 to 3
// sizes, channels), in floating dtypes. It reduces each window to one element. Each size becomes
// (size + 2·padding − extent)/stride + 1, where the quotient is rounded down, or up with
// `ceil_mode`. The kernel's extent is (kernel − 1)·dilation + 1.
//
// Throws `ShapeError` for other ranks, for kernels whose extent exceeds the padded input and for
// windows that contain only padding. Throws `ArgumentError` for settings out of range, `DTypeError`
// for other dtypes.

/// The largest element of each window. Padding is never chosen; NaN takes precedence. The
/// derivative flows to the first of equal elements. The adjoint finds its position again from x:
/// most networks keep x anyway, while positions would need extra memory.
Var max_pool(const Var& x, const PerAxis& kernel, const PoolOptions& options = {},
             Where where = Where::current());

/// The mean of each window. The part of a `ceil_mode` window after the padding never counts.
Var average_pool(const Var& x, const PerAxis& kernel, const AveragePoolOptions& options = {},
                 Where where = Where::current());

/// `stride` and `channels` as in `PoolOptions`.
struct LpPoolOptions {
  PerAxis stride = 0;
  Channels channels = Channels::first;
};
/// (Σ |x|ᵖ)^(1/p) of each window, for p ≥ 1; for p = ∞ the largest |x|. The derivative is defined
/// as 0 where all elements of a window are 0. Throws `ArgumentError` for p < 1.
Var lp_pool(const Var& x, double p, const PerAxis& kernel, const LpPoolOptions& options = {},
            Where where = Where::current());

/// Pooling to the output sizes `sizes`. Window q of an axis is [⌊q·in/out⌋, ⌈(q + 1)·in/out⌉).
/// Window sizes differ by at most one element, and windows may overlap.
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
