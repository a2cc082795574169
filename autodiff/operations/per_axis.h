#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "autodiff/shape.h"
#include "autodiff/var.h"

namespace palimpsest {

/// A setting of the spatial axes of an image: one number for all of them, or one for each,
/// outermost first.
class PerAxis {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): `{.stride = 2}` is how options are written
  PerAxis(std::int64_t all) : values_{all}, count_(1) {}
  /// Throws `ArgumentError` for more than three numbers or none.
  PerAxis(std::initializer_list<std::int64_t> each);

  /// The numbers for `axes` axes, in the last places of three; `missing` stands in front. Throws
  /// `ArgumentError` naming `operation` and `setting` when there are neither one nor `axes` numbers
  /// or one is below `least` or takes more than 31 bits.
  std::array<std::int64_t, 3> fill(int axes, std::int64_t missing, std::int64_t least,
                                   const char* operation, const char* setting,
                                   const Where& where) const;

 private:
  std::array<std::int64_t, 3> values_{};
  int count_;
};

/// Where the axis of an image's channels stands.
enum class Channels : std::uint8_t {
  first,  ///< (batch, channels, sizes)
  last,   ///< (batch, sizes, channels): the axis is moved to the front for computing, and back
};

/// An image, or the shape of one, as (batch, channels, sizes).
Shape with_channels_first(Shape shape, Channels channels);
Var with_channels_first(const Var& x, Channels channels, const Where& where);
/// An image (batch, channels, sizes) with its channels where `channels` says.
Var with_channels_at(const Var& x, Channels channels, const Where& where);

/// The number of spatial axes of an operation's input. Throws `DTypeError` for dtypes that are not
/// floating, `ShapeError` for shapes that are not (batch, channels, 1 to 3 sizes).
int spatial_axes(const char* operation, const ValueType& input, const Where& where);
int spatial_axes(const char* operation, const Var& x, const Where& where);

/// Sizes of the axes of `shape` from `first` on, in the last places of three after ones.
std::array<std::int64_t, 3> spatial_sizes(const Shape& shape, int first);

/// `shape` with the sizes of its axes from `first` on replaced by the last of `sizes`.
Shape with_spatial_sizes(Shape shape, int first, const std::array<std::int64_t, 3>& sizes);

}  // namespace palimpsest
