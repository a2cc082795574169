#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/operations/construction.h"
#include "autodiff/var.h"

/// Operations that only move elements. Any dtype; negative axes count from the end. Axes that do
/// not exist and sizes that do not fit throw `ShapeError`.
namespace palimpsest PALIMPSEST_EXPORT {

/// x with another shape of as many elements; one size may be −1 and is inferred. A view.
Var reshape(const Var& x, const Shape& shape, Where where = Where::current());
Var reshape(const Var& x, std::initializer_list<std::int64_t> sizes,
            Where where = Where::current());

/// Merges the axes `first` to `last`. A view.
Var flatten(const Var& x, int first = 0, int last = -1, Where where = Where::current());
/// x without the given axes, which must have size 1, or without all axes of size 1. A view.
Var squeeze(const Var& x, const Axes& axes = {}, Where where = Where::current());
/// x with a new axis of size 1 as axis `axis` of the result. A view.
Var unsqueeze(const Var& x, int axis, Where where = Where::current());

/// x repeated along axes of size 1 and along new leading axes, to the given shape.
Var broadcast_to(const Var& x, const Shape& shape, Where where = Where::current());

/// x with axis `axes[i]` as axis i; every axis occurs once.
Var permute(const Var& x, const Axes& axes, Where where = Where::current());
/// x with two axes swapped.
Var transpose(const Var& x, int a = -2, int b = -1, Where where = Where::current());

/// The positions start, start + step … of an axis before stop, as in Python. Negative positions
/// count from the end, positions outside are clipped, and a negative step walks backwards. Missing
/// bounds extend to the ends of the axis.
struct Slice {
  std::optional<std::int64_t> start = std::nullopt;
  std::optional<std::int64_t> stop = std::nullopt;
  std::int64_t step = 1;
};

/// One index of `x[...]` or `t[...]`:
///
/// - A number selects one position, and the axis is removed. Negative ones count from the end.
/// - A `Slice` selects a range.
/// - Positions, a value or tensor of integers, select these positions, which count from 0. The axes
///   of the positions replace the axis, as in `index_select`. At most one index can be positions or
///   a mask; for more, use `index`.
/// - A mask, a value or tensor of bool, selects where it is true. It takes as many axes as it has,
///   and one axis replaces them. The number of elements depends on its values, so the mask is
///   evaluated when it is recorded (see `masked_select`).
/// - `new_axis` inserts an axis of size 1, and takes none of x.
/// - `ellipsis` takes as many axes as the other indices leave, at most once.
///
/// Axes without an index stay whole. The syntax reads only: `x[0] = y` does not compile.
class Index {
 public:
  enum class Kind : std::uint8_t { place, range, positions, tensor, new_axis, ellipsis };

  // NOLINTBEGIN(google-explicit-constructor): numbers, slices and so on are what callers write
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Index(I place, Where where = Where::current())
      : kind_(Kind::place), place_(static_cast<std::int64_t>(place)), where_(where) {}
  Index(const Slice& range, Where where = Where::current())
      : kind_(Kind::range), range_(range), where_(where) {}
  Index(const Var& positions, Where where = Where::current())
      : kind_(Kind::positions), positions_(positions), where_(where) {}
  Index(const Tensor& positions, Where where = Where::current())
      : kind_(Kind::tensor), tensor_(positions), where_(where) {}
  /// `Kind::new_axis` or `Kind::ellipsis`; see the constants of these names.
  Index(Kind kind, Where where = Where::current()) : kind_(kind), where_(where) {}
  // NOLINTEND(google-explicit-constructor)

  Kind kind() const { return kind_; }
  std::int64_t place() const { return place_; }
  const Slice& range() const { return range_; }
  const Where& where() const { return where_; }
  /// True for a mask.
  bool is_mask() const;
  /// Number of axes of x that it takes: those of a mask, otherwise one or none.
  int taken_axes() const;
  /// The positions or the mask, as a value of `tape`.
  Var positions(Tape& tape) const {
    return kind_ == Kind::tensor ? tape.constant(tensor_, {}, where_) : positions_;
  }

 private:
  Kind kind_;
  std::int64_t place_ = 0;
  Slice range_ = {};
  Var positions_ = {};
  Tensor tensor_ = {};
  Where where_;
};
inline constexpr Index::Kind new_axis = Index::Kind::new_axis;
inline constexpr Index::Kind ellipsis = Index::Kind::ellipsis;

/// The elements in the given range of each axis; further axes are not sliced. Throws
/// `ArgumentError` for a step of 0.
Var slice(const Var& x, std::span<const Slice> ranges, Where where = Where::current());
Var slice(const Var& x, std::initializer_list<Slice> ranges, Where where = Where::current());
/// Slices one axis.
Var slice(const Var& x, int axis, const Slice& range, Where where = Where::current());
/// x at one position of an axis, without that axis. Throws `ArgumentError` for a position out of
/// range.
Var select(const Var& x, int axis, std::int64_t place, Where where = Where::current());

/// x with its elements reversed along `axes`, or along all axes if `axes` is empty.
Var flip(const Var& x, const Axes& axes = {}, Where where = Where::current());
/// x shifted cyclically by `shift` positions along an axis.
Var roll(const Var& x, std::int64_t shift, int axis, Where where = Where::current());

/// How many elements `pad` adds at each end of an axis.
struct Padding {
  std::int64_t before = 0;
  std::int64_t after = 0;
};
/// How `pad` fills: mirrored about the edge element, or with the edge element.
enum class PadMode : std::uint8_t { reflect, replicate };

/// x padded with `value`; one `Padding` per axis, axis 0 first. Throws `ArgumentError` for negative
/// widths, which crop in PyTorch: use `slice` for that. A wrongly computed width is thus detected.
Var pad(const Var& x, const std::vector<Padding>& widths, double value = 0,
        Where where = Where::current());
/// x padded with its own elements. Reflecting adds fewer elements than the axis has.
Var pad(const Var& x, const std::vector<Padding>& widths, PadMode mode,
        Where where = Where::current());

/// Concatenates tensors along an existing axis; the other sizes must be equal. dtypes are promoted.
/// Throws `ArgumentError` when there are no tensors.
Var concat(std::span<const Var> parts, int axis, Where where = Where::current());
Var concat(std::initializer_list<Var> parts, int axis, Where where = Where::current());
/// Stacks tensors of one shape along a new axis, which is axis `axis` of the result. Throws
/// `ArgumentError` when there are no tensors.
Var stack(std::span<const Var> parts, int axis, Where where = Where::current());
Var stack(std::initializer_list<Var> parts, int axis, Where where = Where::current());
/// The inverse of `concat`: parts with the given sizes, which add up to that of the axis. One node.
std::vector<Var> split(const Var& x, const std::vector<std::int64_t>& sizes, int axis,
                       Where where = Where::current());
/// Splits an axis of n elements into at most `count` parts of ⌈n/count⌉ each; the last may be
/// smaller. As in PyTorch, there may be fewer parts. Throws `ArgumentError` for a count below 1.
std::vector<Var> chunk(const Var& x, std::int64_t count, int axis, Where where = Where::current());

/// The inverse of `stack` for n parts: x at each position of an axis of n elements, without that
/// axis, as in `const auto [amplitude, phase] = unstack<2>(x)`. Throws `ShapeError` as `split` does
/// when the axis has another size.
template <std::size_t n>
std::array<Var, n> unstack(const Var& x, int axis = 0, Where where = Where::current()) {
  const std::vector<Var> parts = split(x, std::vector<std::int64_t>(n, 1), axis, where);
  std::array<Var, n> result;
  for (std::size_t i = 0; i < n; ++i) result[i] = squeeze(parts[i], {axis}, where);
  return result;
}

/// x repeated `counts[i]` times along axis i; one count per axis. PyTorch calls this `repeat`.
/// Throws `ArgumentError` for a negative count.
Var tile(const Var& x, const std::vector<std::int64_t>& counts, Where where = Where::current());
/// Repeats each element `count` times along an axis, like NumPy's `repeat` and PyTorch's
/// `repeat_interleave`. Throws `ArgumentError` for a negative count.
Var repeat(const Var& x, std::int64_t count, int axis, Where where = Where::current());
/// `repeat` by its name in PyTorch.
inline Var repeat_interleave(const Var& x, std::int64_t count, int axis,
                             Where where = Where::current()) {
  return repeat(x, count, axis, where);
}

/// The access pattern of a broadcast from one shape to another.
Access broadcast_access(const Shape& from, const Shape& to);

}  // namespace palimpsest
