#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "autodiff/export.h"
#include "autodiff/shape.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A setting for the spatial axes of an image: one number for all axes, or one per axis, outermost
/// first.
class PerAxis {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): `{.stride = 2}` is how options are written
  PerAxis(std::int64_t all) : values_{all}, count_(1) {}
  /// Throws `ArgumentError` unless there are one to three numbers.
  PerAxis(std::initializer_list<std::int64_t> each);

  /// The numbers for `axes` axes, right-aligned in three places; `missing` fills the places before.
  /// Throws `ArgumentError` naming `operation` and `setting` when there are neither one nor `axes`
  /// numbers, or when one is below `least` or takes more than 31 bits.
  std::array<std::int64_t, 3> fill(int axes, std::int64_t missing, std::int64_t least,
                                   const char* operation, const char* setting,
                                   const Where& where) const;

 private:
  std::array<std::int64_t, 3> values_{};
  int count_;
};

/// Position of an image's channel axis.
enum class Channels : std::uint8_t {
  first,  ///< (batch, channels, sizes)
  last,   ///< (batch, sizes, channels): permuted to channels first for computing, and back
};

/// Throws `ArgumentError` for a value that is none of the two.
void require_position(Channels channels, const char* operation, const Where& where);

/// An image, or its shape, converted to (batch, channels, sizes).
Shape with_channels_first(Shape shape, Channels channels);
Var with_channels_first(const Var& x, Channels channels, const Where& where);
/// An image (batch, channels, sizes) converted to the layout `channels`.
Var with_channels_at(const Var& x, Channels channels, const Where& where);

/// The number of spatial axes of an operation's input. Throws `DTypeError` for dtypes that are not
/// floating, `ShapeError` for shapes other than (batch, channels, 1 to 3 sizes).
int spatial_axes(const char* operation, const ValueType& input, const Where& where);
int spatial_axes(const char* operation, const Var& x, const Where& where);

/// Sizes of the axes of `shape` from `first` on, right-aligned in three places and padded with
/// ones.
std::array<std::int64_t, 3> spatial_sizes(const Shape& shape, int first);

/// `shape` with the sizes of its axes from `first` on replaced by the last of `sizes`.
Shape with_spatial_sizes(Shape shape, int first, const std::array<std::int64_t, 3>& sizes);

}  // namespace palimpsest
