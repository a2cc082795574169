#pragma once

#include "autodiff/export.h"
#include "autodiff/operations/per_axis.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

enum class Interpolation : std::uint8_t {
  nearest,  ///< one element: ⌊q·in/out⌋ for resizing; the nearest for a grid, with ties to even
  linear,   ///< between the two nearest along each axis; bilinear for images
};

struct ResizeOptions {
  Interpolation interpolation = Interpolation::nearest;
  /// For linear interpolation: aligns the centres of the outermost elements; otherwise their outer
  /// edges.
  bool align_corners = false;

  bool operator==(const ResizeOptions&) const = default;
};

/// Resizes x (batch, channels, 1 to 3 sizes). Shrinking does not smooth. Throws `ShapeError` for
/// other ranks and for empty axes, `DTypeError` for dtypes that are not floating.
Var resize(const Var& x, const PerAxis& sizes, const ResizeOptions& options = {},
           Where where = Where::current());
/// `resize` by whole factors.
Var upsample(const Var& x, const PerAxis& factors, const ResizeOptions& options = {},
             Where where = Where::current());

/// Rearranges (batch, channels·r², height, width) to (batch, channels, height·r, width·r). Channel
/// c·r² + i·r + j goes to the positions (r·h + i, r·w + j). Throws `ShapeError` when r² does not
/// divide the channels, `ArgumentError` for r below 1.
Var pixel_shuffle(const Var& x, std::int64_t r, Where where = Where::current());
/// The inverse of `pixel_shuffle`.
Var pixel_unshuffle(const Var& x, std::int64_t r, Where where = Where::current());

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

/// y(b, c, q) = x(b, c, ·) interpolated at the position grid(b, q) = (across, down), where −1 and 1
/// are the image's edges. x is (batch, channels, height, width), grid (batch, height', width', 2),
/// y (batch, channels, height', width'). A NaN position counts as far outside. Throws `ShapeError`
/// when the shapes do not fit.
///
/// Differentiable in both operands, to any order. For nearest interpolation the derivative with
/// respect to the grid is 0. The second derivative with respect to the grid is recorded as gathers
/// and needs the memory of four results.
Var grid_sample(const Var& x, const Var& grid, const GridSampleOptions& options = {},
                Where where = Where::current());

}  // namespace palimpsest
