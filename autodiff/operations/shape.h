#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/var.h"

/// Operations that move elements and compute nothing. Any dtype; negative axes count from the end.
/// Axes that are not there and sizes that do not fit throw `ShapeError`.
namespace palimpsest {

/// x under another shape of as many elements; one size may be −1 and is inferred. A view.
Var reshape(const Var& x, const Shape& shape, Where where = Where::current());
Var reshape(const Var& x, std::initializer_list<std::int64_t> sizes,
            Where where = Where::current());

/// Axes `first` to `last` as one. A view.
Var flatten(const Var& x, int first = 0, int last = -1, Where where = Where::current());
/// x without the named axes, which must have size 1, or without every axis of size 1. A view.
Var squeeze(const Var& x, const Axes& axes = {}, Where where = Where::current());
/// x with a new axis of size 1, which becomes axis `axis`. A view.
Var unsqueeze(const Var& x, int axis, Where where = Where::current());

/// x repeated along axes of size 1, and along new axes in front, to fill `shape`.
Var broadcast_to(const Var& x, const Shape& shape, Where where = Where::current());

/// x with axis `axes[i]` as axis i; every axis is named once.
Var permute(const Var& x, const Axes& axes, Where where = Where::current());
/// x with two axes swapped.
Var transpose(const Var& x, int a = -2, int b = -1, Where where = Where::current());

/// The places start, start + step … of an axis that lie before stop, as in Python: negative places
/// count from the end, places outside are cut off, a negative step walks backwards, and what is
/// missing means the whole axis.
struct Slice {
  std::optional<std::int64_t> start = std::nullopt;
  std::optional<std::int64_t> stop = std::nullopt;
  std::int64_t step = 1;
};

/// The elements at the places `ranges` has of each axis; further axes are whole. Throws
/// `ArgumentError` for a step of 0.
Var slice(const Var& x, std::span<const Slice> ranges, Where where = Where::current());
Var slice(const Var& x, std::initializer_list<Slice> ranges, Where where = Where::current());
/// The same for one axis.
Var slice(const Var& x, int axis, const Slice& range, Where where = Where::current());
/// x at one place of an axis, without that axis. Throws `ArgumentError` for a place outside.
Var select(const Var& x, int axis, std::int64_t place, Where where = Where::current());

/// x with the order of its elements reversed along `axes`, along all when there are none.
Var flip(const Var& x, const Axes& axes = {}, Where where = Where::current());
/// x moved by `shift` places along an axis; what leaves one end enters at the other.
Var roll(const Var& x, std::int64_t shift, int axis, Where where = Where::current());

/// How many elements `pad` adds at either end of an axis.
struct Padding {
  std::int64_t before = 0;
  std::int64_t after = 0;
};
/// What `pad` adds: the elements next to the edge mirrored in it, or the edge itself.
enum class PadMode : std::uint8_t { reflect, replicate };

/// x with `value` around it; one `Padding` for each axis. Throws `ArgumentError` for negative ones,
/// which take elements away in PyTorch: `slice` says so, and a size that was computed wrongly
/// shows.
Var pad(const Var& x, const std::vector<Padding>& widths, double value = 0,
        Where where = Where::current());
/// x with elements of its own around it. Reflecting takes fewer elements than the axis has.
Var pad(const Var& x, const std::vector<Padding>& widths, PadMode mode,
        Where where = Where::current());

/// Tensors one behind the other along an existing axis; other sizes are equal. dtypes are promoted.
/// Throws `ArgumentError` when there are none.
Var concat(std::span<const Var> parts, int axis, Where where = Where::current());
Var concat(std::initializer_list<Var> parts, int axis, Where where = Where::current());
/// Tensors of one shape side by side along a new axis, which becomes axis `axis`.
Var stack(std::span<const Var> parts, int axis, Where where = Where::current());
Var stack(std::initializer_list<Var> parts, int axis, Where where = Where::current());
/// The inverse of `concat`: parts of the given sizes, which add up to the axis. One node.
std::vector<Var> split(const Var& x, const std::vector<std::int64_t>& sizes, int axis,
                       Where where = Where::current());
/// `count` parts of n/count places each, rounded up: the last one is smaller where they do not
/// divide the n places of the axis, and there are fewer parts where the others have them all, as in
/// PyTorch. Throws `ArgumentError` for a count below 1.
std::vector<Var> chunk(const Var& x, std::int64_t count, int axis, Where where = Where::current());

/// x `counts[i]` times one behind the other along axis i; one count for each axis.
Var tile(const Var& x, const std::vector<std::int64_t>& counts, Where where = Where::current());
/// Each element `count` times in a row along an axis.
Var repeat(const Var& x, std::int64_t count, int axis, Where where = Where::current());

/// Where the elements of a tensor broadcast from one shape to another lie.
Access broadcast_access(const Shape& from, const Shape& to);

}  // namespace palimpsest
