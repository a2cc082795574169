#include <algorithm>
#include <cmath>

#include "autodiff/enumerators.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/attributes.h"
#include "autodiff/operations/placed.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/strided.h"

namespace palimpsest {
namespace {

/// Offset of the first element in a tensor of the given shape; sets `strides` to the strides from
/// there.
std::int64_t locate(const Places& places, const Shape& shape, Strides& strides) {
  strides = strides_of(shape);
  std::int64_t offset = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    offset += places.starts[at(axis)] * strides[at(axis)];
    strides[at(axis)] *= places.steps[at(axis)];
  }
  return offset;
}

Var record_slice(const Var& x, const Places& places, const Shape& sizes, const Where& where);
Var record_pad(const Var& x, const PadAttributes& attributes, const Shape& sizes,
               const Where& where);

const Operation slice_operation{
    .name = "slice",
    .formula = "yᵢ = x at start + i·step, x̄ = ȳ there, 0 elsewhere",
    .summary = "ranges of each axis, with steps",
    .compute =
        [](const KernelCall& call) {
          const Operand& y = call.output();
          StridedBox box{y.shape(), {}, strides_of(y.shape())};
          const std::int64_t offset =
              locate(call.attributes.as<Places>(), call.input().shape(), box.from);
          const std::int64_t bytes = size_of(y.dtype());
          copy_strided(box, call.input().data + offset * bytes, y.data, bytes);
        },
    .vjp =
        [](const Pullback& p) {
          const Places places = p.attributes().as<Places>();
          p.set(0, record_pad(p.adjoint(), {places, 0}, p.input().shape(), p.where()));
        },
    .cost =
        [](const NodeView& node) {
          return Cost{0, 2 * static_cast<double>(node.output().bytes())};
        },
    .access =
        [](const NodeView& node) {
          Access access;
          access.offset =
              locate(node.attributes().as<Places>(), node.input(0).shape, access.strides);
          return access;
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

/// Fills the elements around the places. If the places have gaps, fills everything, else the slabs
/// before and after them on each axis in turn.
void fill_around(const Operand& y, const Shape& inner, const PadAttributes& attributes) {
  const auto& [starts, steps] = attributes.places;
  bool gaps = inner.elements() == 0;
  for (int axis = 0; axis < inner.rank(); ++axis) {
    gaps = gaps || (std::abs(steps[at(axis)]) != 1 && inner[axis] > 1);
  }
  if (gaps) return fill_box(y, 0, y.shape(), attributes.value);
  const Strides strides = strides_of(y.shape());
  Shape slab = y.shape();
  std::int64_t offset = 0;
  for (int axis = 0; axis < inner.rank(); ++axis) {
    const std::int64_t stride = strides[at(axis)];
    const std::int64_t last = starts[at(axis)] + (inner[axis] - 1) * steps[at(axis)];
    const auto [low, high] = std::minmax(starts[at(axis)], last);
    slab[axis] = low;
    fill_box(y, offset, slab, attributes.value);
    slab[axis] = y.shape()[axis] - high - 1;
    fill_box(y, offset + (high + 1) * stride, slab, attributes.value);
    slab[axis] = inner[axis];
    offset += low * stride;
  }
}

/// The stretches for padding along the first axis only.
std::vector<Stretch> pad_stretches(const NodeView& node) {
  const auto& [places, number] = node.attributes().as<PadAttributes>();
  const Shape inner = node.input(0).shape;
  const Shape shape = node.output().shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool whole = axis > 0 && places.starts[at(axis)] == 0 && inner[axis] == shape[axis];
    if (places.steps[at(axis)] != 1 || (axis > 0 && !whole)) return {};
  }
  const std::int64_t elements = shape.elements();
  const std::int64_t row = shape.rank() == 0 ? 0 : strides_of(shape)[0];
  const std::int64_t begin = places.starts[0] * row;
  const std::int64_t end = begin + inner.elements();
  return {{0, begin, -1, number}, {begin, end, 0}, {end, elements, -1, number}};
}

const Operation pad_operation{
    .name = "pad",
    .formula = "y at start + i·step = xᵢ, a number elsewhere; x̄ᵢ = ȳ at start + i·step",
    .summary = "padding with a number around and between the elements",
    .compute =
        [](const KernelCall& call) {
          const auto& attributes = call.attributes.as<PadAttributes>();
          const Operand& x = call.input();
          const Operand& y = call.output();
          fill_around(y, x.shape(), attributes);
          StridedBox box{x.shape(), strides_of(x.shape()), {}};
          const std::int64_t offset = locate(attributes.places, y.shape(), box.to);
          const std::int64_t bytes = size_of(y.dtype());
          copy_strided(box, x.data, y.data + offset * bytes, bytes);
        },
    .vjp =
        [](const Pullback& p) {
          const Places places = p.attributes().as<PadAttributes>().places;
          p.set(0, record_slice(p.adjoint(), places, p.input().shape(), p.where()));
        },
    .stretches = pad_stretches,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

Var record_slice(const Var& x, const Places& places, const Shape& sizes, const Where& where) {
  const ValueType type{sizes, x.dtype()};
  return x.tape().record(slice_operation, {&x, 1}, {&type, 1}, places, where);
}

Var record_pad(const Var& x, const PadAttributes& attributes, const Shape& sizes,
               const Where& where) {
  const ValueType type{sizes, x.dtype()};
  return x.tape().record(pad_operation, {&x, 1}, {&type, 1}, attributes, where);
}

/// The places that cover a whole tensor.
Places everything(const Shape& shape) {
  Places places;
  std::fill_n(places.steps.begin(), shape.rank(), 1);
  return places;
}

/// `count` elements along one axis from `start` on.
Var along(const Var& x, int axis, std::int64_t start, std::int64_t step, std::int64_t count,
          const Where& where) {
  Shape sizes = x.shape();
  Places places = everything(sizes);
  sizes[axis] = count;
  places.starts[at(axis)] = start;
  places.steps[at(axis)] = step;
  return record_slice(x, places, sizes, where);
}

/// Start of a range on an axis of n elements, and its number of elements.
std::pair<std::int64_t, std::int64_t> resolve(const Slice& range, std::int64_t n,
                                              const Where& where) {
  const std::int64_t step = range.step;
  if (step == 0) throw ArgumentError("slice", "the step is 0; give a step other than 0", where);
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? n : n - 1;
  const auto place = [&](std::optional<std::int64_t> given, std::int64_t missing) {
    if (!given) return missing;
    return std::clamp(*given < 0 ? *given + n : *given, low, high);
  };
  const std::int64_t start = place(range.start, step > 0 ? low : high);
  const std::int64_t stop = place(range.stop, step > 0 ? high : low);
  const std::int64_t distance = step > 0 ? stop - start : start - stop;
  const std::int64_t stride = std::abs(step);
  return {start, distance <= 0 ? 0 : (distance - 1) / stride + 1};
}

void require_widths(const Var& x, const std::vector<Padding>& widths, const Where& where) {
  require_value(x, "pad", where);
  if (widths.size() != at(x.rank())) {
    throw ShapeError("pad",
                     std::to_string(widths.size()) + " widths for shape " + to_string(x.shape()) +
                         "; give one width per axis",
                     where);
  }
  for (const auto& [before, after] : widths) {
    if (before < 0 || after < 0) {
      throw ArgumentError("pad",
                          "widths (" + std::to_string(before) + ", " + std::to_string(after) +
                              ") are negative; use slice to make a tensor smaller",
                          where);
    }
  }
}

}  // namespace

std::span<const Operation* const> slice_operations() {
  static const Operation* const family[] = {&slice_operation, &pad_operation};
  return family;
}

std::optional<Placed> placed_among_zeros(const Var& padded) {
  Tape& tape = padded.tape();
  const NodeId node = padded.node();
  if (&tape.operation(node) != &pad_operation) return {};
  const auto& [places, number] = tape.attributes(node).as<PadAttributes>();
  const Var part = tape.var(tape.inputs(node)[0]);
  const Shape inner = part.shape();
  const Shape shape = padded.shape();
  std::optional<int> along;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (places.steps[at(axis)] != 1) return {};
    if (inner[axis] == shape[axis]) continue;
    if (along) return {};
    along = axis;
  }
  if (number != 0 || !along) return {};
  return Placed{part, *along, places.starts[at(*along)]};
}

Var spread_among_zeros(const Var& x, std::int64_t start, std::int64_t step, std::int64_t size,
                       const Where& where) {
  Shape sizes = x.shape();
  const int last = sizes.rank() - 1;
  PadAttributes attributes{everything(sizes), 0};
  attributes.places.starts[at(last)] = start;
  attributes.places.steps[at(last)] = step;
  sizes[last] = size;
  return record_pad(x, attributes, sizes, where);
}

Var slice(const Var& x, std::span<const Slice> ranges, Where where) {
  require_value(x, "slice", where);
  const Shape shape = x.shape();
  if (ranges.size() > at(shape.rank())) {
    throw ShapeError("slice",
                     std::to_string(ranges.size()) + " ranges for shape " + to_string(shape) +
                         "; give at most one range per axis",
                     where);
  }
  Places places = everything(shape);
  Shape sizes = shape;
  bool whole = true;
  for (int axis = 0; axis < static_cast<int>(ranges.size()); ++axis) {
    const Slice& range = ranges[at(axis)];
    const auto [start, count] = resolve(range, shape[axis], where);
    places.starts[at(axis)] = count == 0 ? 0 : start;
    places.steps[at(axis)] = range.step;
    sizes[axis] = count;
    whole = whole && range.step == 1 && count == shape[axis];
  }
  return whole ? x : record_slice(x, places, sizes, where);
}

Var slice(const Var& x, std::initializer_list<Slice> ranges, Where where) {
  return slice(x, std::span(ranges.begin(), ranges.size()), where);
}

Var slice(const Var& x, int axis, const Slice& range, Where where) {
  require_value(x, "slice", where);
  std::array<Slice, max_rank> ranges;
  const std::size_t place = at(x.shape().wrap(axis, "slice", where));
  ranges[place] = range;
  return slice(x, std::span(ranges).first(place + 1), where);
}

Var select(const Var& x, int axis, std::int64_t place, Where where) {
  require_value(x, "select", where);
  Shape shape = x.shape();
  const int wrapped = shape.wrap(axis, "select", where);
  const std::int64_t n = shape[wrapped];
  if (place < -n || place >= n) {
    throw ArgumentError(
        "select",
        "position " + std::to_string(place) + " is out of range for axis " + std::to_string(axis) +
            " of shape " + to_string(shape) +
            (n == 0 ? ", which has no positions there"
                    : "; use " + std::to_string(-n) + " to " + std::to_string(n - 1)),
        where);
  }
  shape.erase(wrapped);
  return reshape(along(x, wrapped, place < 0 ? place + n : place, 1, 1, where), shape, where);
}

Var flip(const Var& x, const Axes& axes, Where where) {
  require_value(x, "flip", where);
  const Shape shape = x.shape();
  Places places = everything(shape);
  const auto turn = [&](int axis) {
    if (shape[axis] < 2) return;
    places.starts[at(axis)] = shape[axis] - 1;
    places.steps[at(axis)] = -1;
  };
  for (const int axis : axes) turn(shape.wrap(axis, "flip", where));
  for (int axis = 0; axes.empty() && axis < shape.rank(); ++axis) turn(axis);
  return record_slice(x, places, shape, where);
}

Var pad(const Var& x, const std::vector<Padding>& widths, double value, Where where) {
  require_widths(x, widths, where);
  Shape sizes = x.shape();
  PadAttributes attributes{everything(sizes), value};
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    const auto& [before, after] = widths[at(axis)];
    attributes.places.starts[at(axis)] = before;
    sizes[axis] = add_sizes(sizes[axis], add_sizes(before, after));
  }
  return sizes == x.shape() ? x : record_pad(x, attributes, sizes, where);
}

Var pad(const Var& x, const std::vector<Padding>& widths, PadMode mode, Where where) {
  require_widths(x, widths, where);
  require_enumerator(mode, {PadMode::reflect, PadMode::replicate}, "pad", "the mode", where);
  const bool mirrors = mode == PadMode::reflect;
  Var result = x;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto& [before, after] = widths[at(axis)];
    const std::int64_t n = x.shape()[axis];
    if (std::max(before, after) > 0 && n <= (mirrors ? std::max(before, after) : 0)) {
      throw ShapeError("pad",
                       "axis " + std::to_string(axis) + " of shape " + to_string(x.shape()) +
                           " is too short to supply a padding of " +
                           std::to_string(std::max(before, after)) + " elements; give at most " +
                           std::to_string(mirrors ? std::max<std::int64_t>(n - 1, 0) : 0),
                       where);
    }
    const auto edge = [&](std::int64_t width, std::int64_t mirrored, std::int64_t end) {
      if (mirrors) return along(result, axis, mirrored, -1, width, where);
      Shape repeated = result.shape();
      repeated[axis] = width;
      return broadcast_to(along(result, axis, end, 1, 1, where), repeated, where);
    };
    std::vector<Var> parts;
    if (before > 0) parts.push_back(edge(before, before, 0));
    parts.push_back(result);
    if (after > 0) parts.push_back(edge(after, n - 2, n - 1));
    if (parts.size() > 1) result = concat(parts, axis, where);
  }
  return result;
}

}  // namespace palimpsest
