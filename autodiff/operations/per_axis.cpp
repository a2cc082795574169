#include "autodiff/operations/per_axis.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "autodiff/enumerators.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {

namespace {

Var move_axis(const Var& x, int from, int to, const Where& where) {
  std::vector<int> axes(static_cast<std::size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + from);
  axes.insert(axes.begin() + to, from);
  return permute(x, axes, where);
}

}  // namespace

PerAxis::PerAxis(std::initializer_list<std::int64_t> each) : count_(static_cast<int>(each.size())) {
  if (each.size() == 0 || each.size() > values_.size()) {
    throw ArgumentError(
        "[per_axis] " + std::to_string(each.size()) +
        " numbers given for the spatial axes; give one number, or one for each of 1 to 3 axes");
  }
  std::copy(each.begin(), each.end(), values_.begin());
}

std::array<std::int64_t, 3> PerAxis::fill(int axes, std::int64_t missing, std::int64_t least,
                                          const char* operation, const char* setting,
                                          const Where& where) const {
  if (count_ != 1 && count_ != axes) {
    throw ArgumentError(operation,
                        std::string(setting) + " has " + std::to_string(count_) + " numbers for " +
                            std::to_string(axes) + " spatial axes; give one, or one for each",
                        where);
  }
  std::array<std::int64_t, 3> result{missing, missing, missing};
  for (int axis = 0; axis < axes; ++axis) {
    const std::int64_t value = values_[static_cast<std::size_t>(count_ == 1 ? 0 : axis)];
    if (value < least) {
      throw ArgumentError(operation,
                          std::string(setting) + " is " + std::to_string(value) +
                              "; it must be at least " + std::to_string(least),
                          where);
    }
    // Sums and products of two settings then fit in 64 bits.
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (value > most) {
      throw ArgumentError(operation,
                          std::string(setting) + " is " + std::to_string(value) +
                              "; it must be at most " + std::to_string(most),
                          where);
    }
    result[static_cast<std::size_t>(3 - axes + axis)] = value;
  }
  return result;
}

void require_position(Channels channels, const char* operation, const Where& where) {
  require_enumerator(channels, {Channels::first, Channels::last}, operation,
                     "the position of channels", where);
}

Shape with_channels_first(Shape shape, Channels channels) {
  if (channels == Channels::first) return shape;
  const std::int64_t count = shape[-1];
  shape.erase(shape.rank() - 1);
  shape.insert(1, count);
  return shape;
}

Var with_channels_first(const Var& x, Channels channels, const Where& where) {
  return channels == Channels::first ? x : move_axis(x, x.rank() - 1, 1, where);
}

Var with_channels_at(const Var& x, Channels channels, const Where& where) {
  return channels == Channels::first ? x : move_axis(x, 1, x.rank() - 1, where);
}

int spatial_axes(const char* operation, const ValueType& input, const Where& where) {
  if (!is_floating(input.dtype)) {
    throw DTypeError(operation,
                     "takes floating dtypes, not " + to_string(input) + "; cast it first", where);
  }
  const int axes = input.shape.rank() - 2;
  if (axes < 1 || axes > 3) {
    throw ShapeError(operation,
                     "input " + to_string(input.shape) +
                         " is not (batch, channels, 1 to 3 spatial axes); reshape it",
                     where);
  }
  return axes;
}

std::array<std::int64_t, 3> spatial_sizes(const Shape& shape, int first) {
  std::array<std::int64_t, 3> sizes{1, 1, 1};
  std::copy(shape.begin() + first, shape.end(), sizes.end() - (shape.rank() - first));
  return sizes;
}

Shape with_spatial_sizes(Shape shape, int first, const std::array<std::int64_t, 3>& sizes) {
  for (int axis = first; axis < shape.rank(); ++axis) {
    shape[axis] = sizes[static_cast<std::size_t>(3 - shape.rank() + axis)];
  }
  return shape;
}

int spatial_axes(const char* operation, const Var& x, const Where& where) {
  require_value(x, operation, where);
  return spatial_axes(operation, x.type(), where);
}

}  // namespace palimpsest
