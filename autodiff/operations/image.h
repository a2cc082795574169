#pragma once

#include "autodiff/operations/per_axis.h"
#include "autodiff/var.h"

namespace palimpsest {

enum class Interpolation : std::uint8_t {
  nearest,  ///< one element: for sizes ⌊q·in/out⌋, for a grid the nearest, of two the even one
  linear,   ///< between the two nearest along each axis: bilinear for images
};

struct ResizeOptions {
  Interpolation interpolation = Interpolation::nearest;
  /// For linear interpolation: the outermost elements keep their places, else the edges do.
  bool align_corners = false;

  bool operator==(const ResizeOptions&) const = default;
};

/// x, (batch, channels, 1 to 3 sizes), at other sizes. Shrinking does not smooth. Throws
/// `ShapeError` for other ranks and axes without elements, `DTypeError` for dtypes that are not
/// floating.
Var resize(const Var& x, const PerAxis& sizes, const ResizeOptions& options = {},
           Where where = Where::current());
/// `resize` to whole multiples of the sizes.
Var upsample(const Var& x, const PerAxis& factors, const ResizeOptions& options = {},
             Where where = Where::current());

/// (batch, channels·r², height, width) as (batch, channels, height·r, width·r): channel
/// c·r² + i·r + j goes to the places r·h + i, r·w + j. Throws `ShapeError` when r² does not divide
/// the channels, `ArgumentError` for r below 1.
Var pixel_shuffle(const Var& x, std::int64_t r, Where where = Where::current());
/// The inverse of `pixel_shuffle`.
Var pixel_unshuffle(const Var& x, std::int64_t r, Where where = Where::current());

enum class GridPadding : std::uint8_t {
  zeros,   ///< the image is surrounded by zeros
  border,  ///< places outside are moved to the edge
};

struct GridSampleOptions {
  Interpolation interpolation = Interpolation::linear;
  GridPadding padding = GridPadding::zeros;
  /// −1 and 1 are the centres of the outermost elements, else their outer edges.
  bool align_corners = false;
};

/// y(b, c, q) = x(b, c, ·) interpolated at the place grid(b, q) = (across, down), where
/// −1 and 1 are the image's edges. x is (batch, channels, height, width), grid (batch, height',
/// width', 2), y (batch, channels, height', width'). Differentiable in both, to any order; the
/// second derivative by the grid is recorded in gathers and takes the memory of four results. By
/// the grid, the derivative of the nearest element is 0. A place that is not a number is far
/// outside. Throws `ShapeError` when the shapes do not fit.
Var grid_sample(const Var& x, const Var& grid, const GridSampleOptions& options = {},
                Where where = Where::current());

}  // namespace palimpsest
