#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autodiff/error.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Largest number of axes of a tensor.
inline constexpr int max_rank = 8;

/// Sizes of a tensor's axes, outermost first; a scalar has none. A value type that does not
/// allocate.
class Shape {
 public:
  Shape() = default;
  /// Throws `ShapeError`, naming the line, for a negative size or more than `max_rank` axes.
  Shape(std::initializer_list<std::int64_t> sizes, const Where& where = Where::current())
      : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size()), where) {}
  explicit Shape(std::span<const std::int64_t> sizes, const Where& where = Where::current()) {
    for (const std::int64_t size : sizes) {
      if (size < 0 || rank_ == max_rank) throw_impossible(sizes, where);
      sizes_[static_cast<std::size_t>(rank_++)] = size;
    }
  }

  /// Number of axes.
  int rank() const { return rank_; }
  /// Size of axis `axis`; negative axes count from the end. All throw `ShapeError` when out of
  /// range.
  std::int64_t size(int axis) const { return sizes_[index(axis)]; }
  std::int64_t operator[](int axis) const { return sizes_[index(axis)]; }
  std::int64_t& operator[](int axis) { return sizes_[index(axis)]; }
  /// Number of elements: the product of the sizes, 1 for a scalar. Throws `ShapeError` when no
  /// memory could hold them.
  std::int64_t elements() const;
  /// True when a tensor can have this shape: no size is negative, and memory can hold the elements.
  bool is_possible() const;
  /// `axis` as a number in [0, rank); negative axes count from the end. Throws `ShapeError`.
  int wrap(int axis) const;
  /// Like the overload above; the error names `operation`.
  int wrap(int axis, std::string_view operation, const Where& where) const;

  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }
  std::span<const std::int64_t> sizes() const { return {begin(), end()}; }

  /// Appends an axis. Throws `ShapeError` for a negative size or more than `max_rank` axes.
  void push_back(std::int64_t size) {
    if (size < 0 || rank_ == max_rank) throw_no_room_for(size);
    sizes_[static_cast<std::size_t>(rank_++)] = size;
  }
  /// Adds an axis before axis `axis`, which lies in [0, rank]. Throws `ShapeError` for another one,
  /// and as `push_back`.
  void insert(int axis, std::int64_t size);
  /// Removes axis `axis`, which lies in [0, rank). Throws `ShapeError` for another one.
  void erase(int axis);

  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank_); ++axis) {
      if (sizes_[axis] != other.sizes_[axis]) return false;
    }
    return true;
  }

 private:
  [[noreturn]] static void throw_impossible(std::span<const std::int64_t> sizes,
                                            const Where& where);
  [[noreturn]] static void throw_no_room_for(std::int64_t size);
  [[noreturn]] void throw_outside(int axis, int last) const;
  std::size_t index(int axis) const {
    const bool is_plain = axis >= 0 && axis < rank_;
    return static_cast<std::size_t>(is_plain ? axis : wrap(axis));
  }

  std::array<std::int64_t, max_rank> sizes_{};
  int rank_ = 0;
};

/// `(2, 3)`; `()` for a scalar.
std::string to_string(const Shape& shape);
/// Writes what `to_string` returns.
std::ostream& operator<<(std::ostream& stream, const Shape& shape);

/// Axes given by the user, as in `sum(x, {0, 1})` or `sum(x, 0)`; negative ones count from the end.
class Axes : public std::vector<int> {
 public:
  Axes() = default;
  Axes(std::initializer_list<int> axes) : std::vector<int>(axes) {}
  // NOLINTBEGIN(google-explicit-constructor): callers write one axis without braces
  Axes(std::vector<int> axes) : std::vector<int>(std::move(axes)) {}
  template <std::signed_integral I>
  Axes(I axis) : std::vector<int>(1, static_cast<int>(axis)) {}
  // NOLINTEND(google-explicit-constructor)
  /// `sum(x, true)` is not the sum over axis 1, and `Axes(n)` of a size not n axes.
  template <std::unsigned_integral U>
  Axes(U axis) = delete;
};

/// One number for each axis.
using Strides = std::array<std::int64_t, max_rank>;

/// Row-major strides, in elements.
Strides strides_of(const Shape& shape);

/// a + b and a·b of sizes, saturated at the largest number.
std::int64_t add_sizes(std::int64_t a, std::int64_t b);
std::int64_t multiply_sizes(std::int64_t a, std::int64_t b);

/// The broadcast shape of two operands by NumPy's rule: aligned at the last axis, sizes equal or
/// one of them 1. Throws `ShapeError` naming `operation` and both shapes.
Shape broadcast(const Shape& a, const Shape& b, std::string_view operation, const Where& where);

/// Throws `ShapeError` if a tensor cannot have `count` axes.
void require_axes(std::int64_t count, std::string_view operation, const Where& where);

}  // namespace palimpsest
