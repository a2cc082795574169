#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "autodiff/composition.h"
#include "autodiff/enumerators.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

/// One axis of the image: element = scale·g + offset, clamped to [low, high].
struct SampledAxis {
  std::int64_t size;
  double scale, offset;
  double low, high;

  bool operator==(const SampledAxis& other) const {
    return size == other.size && same_number(scale, other.scale) &&
           same_number(offset, other.offset) && same_number(low, other.low) &&
           same_number(high, other.high);
  }
};

struct GridAttributes {
  std::int64_t batch, channels, places;
  std::array<SampledAxis, 3> axes;  // depth, down, across; in images the depth is 1
  int coordinates;                  // of a grid point: across, down and perhaps depth
  Interpolation interpolation;

  bool operator==(const GridAttributes&) const = default;
  /// Neighbours of a position along an axis.
  int neighbours(std::size_t axis) const {
    return interpolation == Interpolation::nearest || (axis == 0 && coordinates == 2) ? 1 : 2;
  }
  std::int64_t image_size() const { return axes[0].size * axes[1].size * axes[2].size; }
};

SampledAxis grid_axis(std::int64_t size, const GridSampleOptions& options) {
  const auto n = static_cast<double>(size);
  SampledAxis axis{size, options.align_corners ? (n - 1) / 2 : n / 2, (n - 1) / 2, 0, n - 1};
  // Two elements outside the image, all neighbours are zeros.
  if (options.padding == GridPadding::zeros) axis.low = -2, axis.high = n + 1;
  return axis;
}

/// A position along one axis: its first neighbour, the distance from that, and the derivative of
/// the distance with respect to the grid. It is 0 at both ends, which the image has no neighbours
/// beyond, and outside.
template <class T>
struct Place {
  std::int64_t element = 0;
  T fraction = T(0), slope = T(0);

  Place() = default;
  Place(const SampledAxis& axis, Interpolation interpolation, T g) {
    const T at = g * static_cast<T>(axis.scale) + static_cast<T>(axis.offset);
    const T low = static_cast<T>(axis.low);
    const T high = static_cast<T>(axis.high);
    const bool inside = at > low && at < high;
    const T kept = inside ? at : at >= high ? high : low;
    if (interpolation == Interpolation::nearest) {
      element = static_cast<std::int64_t>(std::nearbyint(kept));
      return;
    }
    element = static_cast<std::int64_t>(kept);
    if (static_cast<T>(element) > kept) --element;
    fraction = kept - static_cast<T>(element);
    if (inside) slope = static_cast<T>(axis.scale);
  }
};

/// A neighbour of a position: its element, and its distance along each axis (0 or 1).
struct Neighbour {
  std::int64_t element;
  std::array<int, 3> step;
};

/// A position in the image.
template <class T>
struct Spot {
  std::array<Place<T>, 3> places;

  Spot(const GridAttributes& a, const T* grid) {
    for (int c = 0; c < a.coordinates; ++c) {
      const auto axis = static_cast<std::size_t>(2 - c);
      places[axis] = Place<T>(a.axes[axis], a.interpolation, grid[c]);
    }
  }

  /// Calls f(neighbour) for the neighbours inside the image; the others are zero.
  template <class F>
  void for_neighbours(const GridAttributes& a, F f) const {
    for (int i = 0; i < a.neighbours(0); ++i) {
      const std::int64_t layer = places[0].element + i;
      if (layer < 0 || layer >= a.axes[0].size) continue;
      for (int j = 0; j < a.neighbours(1); ++j) {
        const std::int64_t row = places[1].element + j;
        if (row < 0 || row >= a.axes[1].size) continue;
        for (int k = 0; k < a.neighbours(2); ++k) {
          const std::int64_t column = places[2].element + k;
          if (column < 0 || column >= a.axes[2].size) continue;
          f(Neighbour{(layer * a.axes[1].size + row) * a.axes[2].size + column, {i, j, k}});
        }
      }
    }
  }
  /// The weight of a neighbour along one axis, or of all axes.
  T weight(const Neighbour& n, std::size_t axis) const {
    return n.step[axis] == 0 ? 1 - places[axis].fraction : places[axis].fraction;
  }
  T weight(const Neighbour& n) const { return weight(n, 0) * weight(n, 1) * weight(n, 2); }
  /// The derivative of the weight with respect to the grid's coordinate of an axis.
  T slope(const Neighbour& n, std::size_t axis) const {
    const T along = n.step[axis] == 0 ? -places[axis].slope : places[axis].slope;
    return weight(n, (axis + 1) % 3) * weight(n, (axis + 2) % 3) * along;
  }
};

/// Calls f(image and channel, grid of its image) for all planes in parallel.
template <class T, class F>
void for_planes(const GridAttributes& a, const Operand& grid, F f) {
  const double cost = 20.0 * static_cast<double>(a.places);
  parallel_chunks(a.batch * a.channels, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      f(plane, grid.as<T>() + plane / a.channels * a.places * a.coordinates);
    }
  });
}

/// Inputs x, grid.
template <class T>
void compute_grid_sample(const KernelCall& call) {
  const auto& a = call.attributes.as<GridAttributes>();
  for_planes<T>(a, call.input(1), [&](std::int64_t plane, const T* grid) {
    const T* x = call.input(0).as<T>() + plane * a.image_size();
    T* y = call.output().as<T>() + plane * a.places;
    for (std::int64_t q = 0; q < a.places; ++q) {
      T total(0);
      const Spot<T> spot(a, grid + a.coordinates * q);
      spot.for_neighbours(a, [&](const Neighbour& n) { total += spot.weight(n) * x[n.element]; });
      y[q] = total;
    }
  });
}

/// Inputs ȳ, grid. One thread processes the positions of a plane, in order.
template <class T>
void compute_image_adjoint(const KernelCall& call) {
  const auto& a = call.attributes.as<GridAttributes>();
  for_planes<T>(a, call.input(1), [&](std::int64_t plane, const T* grid) {
    const T* y = call.input(0).as<T>() + plane * a.places;
    T* x = call.output().as<T>() + plane * a.image_size();
    std::fill_n(x, a.image_size(), T(0));
    for (std::int64_t q = 0; q < a.places; ++q) {
      const Spot<T> spot(a, grid + a.coordinates * q);
      spot.for_neighbours(a, [&](const Neighbour& n) { x[n.element] += spot.weight(n) * y[q]; });
    }
  });
}

/// Inputs x, grid, ȳ.
template <class T>
void compute_grid_adjoint(const KernelCall& call) {
  const auto& a = call.attributes.as<GridAttributes>();
  const double cost = 20.0 * static_cast<double>(a.channels);
  parallel_chunks(a.batch * a.places, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t image = place / a.places * a.channels;
      const T* x = call.input(0).as<T>() + image * a.image_size();
      const T* y = call.input(2).as<T>() + image * a.places + place % a.places;
      const Spot<T> spot(a, call.input(1).as<T>() + a.coordinates * place);
      std::array<T, 3> sums{};
      for (std::int64_t c = 0; c < a.channels; ++c, x += a.image_size(), y += a.places) {
        spot.for_neighbours(a, [&](const Neighbour& n) {
          for (int k = 0; k < a.coordinates; ++k) {
            sums[static_cast<std::size_t>(k)] +=
                spot.slope(n, static_cast<std::size_t>(2 - k)) * x[n.element] * *y;
          }
        });
      }
      std::copy_n(sums.begin(), a.coordinates, call.output().as<T>() + a.coordinates * place);
    }
  });
}

Cost grid_sample_cost(const NodeView& node) {
  const auto& a = node.attributes().as<GridAttributes>();
  return {20.0 * static_cast<double>(a.batch * a.channels * a.places), bytes_moved(node)};
}

Var record(const Operation& operation, std::initializer_list<Var> inputs, const Shape& shape,
           const GridAttributes& a, const Where& where) {
  const ValueType type{shape, inputs.begin()->dtype()};
  return inputs.begin()->tape().record(operation, std::span(inputs.begin(), inputs.size()),
                                       {&type, 1}, a, where);
}

/// `Place` of all grid points by recorded operations, with shape (batch, 1, places).
struct RecordedPlace {
  Var below, fraction;

  RecordedPlace(const SampledAxis& axis, const Var& g) {
    const Var place = g * axis.scale + axis.offset;
    // The ends count as outside and a NaN as far outside, as in the kernels.
    const Var above_low = where(greater(place, axis.low), place, axis.low);
    const Var at = where(less(above_low, axis.high), above_low, axis.high);
    below = stop_gradient(floor(at));
    fraction = at - below;
  }
};

/// Interpolates along the given axis and those after it. `index` has the positions along the axes
/// before, as one number, and `inside` is 1 where all of them are in the image.
Var interpolated(const GridAttributes& a, const Var& x, std::span<const RecordedPlace> places,
                 const Var& index, const Var& inside) {
  if (places.empty()) return gather(x, 2, broadcast_to(index, inside.shape())) * inside;
  const SampledAxis& axis = a.axes[3 - places.size()];
  const auto at = [&](const Var& place) {
    const Var kept = clamp(place, 0, static_cast<double>(axis.size - 1));
    const Var there = cast(equal(kept, place), x.dtype());
    const Var last = cast(kept, DType::i64);
    return interpolated(a, x, places.subspan(1),
                        index.defined() ? index * static_cast<double>(axis.size) + last : last,
                        inside * there);
  };
  const RecordedPlace& place = places.front();
  return at(place.below) * (1 - place.fraction) + at(place.below + 1) * place.fraction;
}

/// grid_sample by recorded operations, which can be differentiated with respect to the grid any
/// number of times. Computed in the compute dtype, since 16 bits cannot distinguish neighbouring
/// positions.
Var composed(const GridAttributes& a, const Var& image, const Var& grid) {
  const DType dtype = compute_dtype(image.dtype());
  const Var x = reshape(cast(image, dtype), Shape{a.batch, a.channels, a.image_size()});
  const Var points = reshape(cast(grid, dtype), Shape{a.batch, 1, a.places, a.coordinates});
  std::vector<RecordedPlace> places;
  for (int c = a.coordinates; c-- > 0;) {
    places.emplace_back(a.axes[static_cast<std::size_t>(2 - c)], select(points, 3, c));
  }
  const Var all = full(x.tape(), Shape{a.batch, a.channels, a.places}, 1, dtype);
  return interpolated(a, x, places, {}, all);
}

extern const Operation image_adjoint_operation;

const Operation grid_adjoint_operation{
    .name = "grid_sample_grid_adjoint",
    .formula = "g = Σ over channels of y·∂grid_sample(x, grid)/∂grid; derivatives by gathers",
    .summary = "adjoint of grid_sample with respect to the grid",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_grid_adjoint<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const auto a = p.attributes().as<GridAttributes>();
          pull_back_through(p, [&a](std::span<const Var> inputs) {
            const Var y = composed(a, inputs[0], inputs[1]);
            const Var seed = reshape(cast(inputs[2], y.dtype()), y.shape());
            return vjp({&y, 1}, {&inputs[1], 1}, {&seed, 1});
          });
        },
    .cost = grid_sample_cost,
};

const Operation grid_sample_operation{
    .name = "grid_sample",
    .formula = "y(c, q) = x(c, ·) interpolated at grid(q); x̄, ḡ = its adjoints",
    .summary = "nearest, bilinear or trilinear interpolation at the points of a grid",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_grid_sample<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const auto a = p.attributes().as<GridAttributes>();
          if (p.wants(0)) {
            p.set(0, record(image_adjoint_operation, {p.adjoint(), p.input(1)}, p.input(0).shape(),
                            a, p.where()));
          }
          if (p.wants(1) && a.interpolation == Interpolation::linear) {
            p.set(1, record(grid_adjoint_operation, {p.input(0), p.input(1), p.adjoint()},
                            p.input(1).shape(), a, p.where()));
          }
        },
    .cost = grid_sample_cost,
};

const Operation image_adjoint_operation{
    .name = "grid_sample_image_adjoint",
    .formula = "x = Σ y(q)·weights of grid(q); ȳ = grid_sample(x̄, grid), ḡ = its adjoint at (x̄, y)",
    .summary = "adjoint of grid_sample with respect to the image",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(),
                         [&]<class T>(T) { compute_image_adjoint<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const auto a = p.attributes().as<GridAttributes>();
          if (p.wants(0)) {
            p.set(0, record(grid_sample_operation, {p.adjoint(), p.input(1)}, p.input(0).shape(), a,
                            p.where()));
          }
          if (p.wants(1) && a.interpolation == Interpolation::linear) {
            p.set(1, record(grid_adjoint_operation, {p.adjoint(), p.input(1), p.input(0)},
                            p.input(1).shape(), a, p.where()));
          }
        },
    .cost = grid_sample_cost,
};

}  // namespace

std::span<const Operation* const> grid_sample_operations() {
  static const Operation* const family[] = {&grid_sample_operation, &image_adjoint_operation,
                                            &grid_adjoint_operation};
  return family;
}

Var grid_sample(const Var& x, const Var& grid, const GridSampleOptions& options, Where where) {
  const Var both[] = {x, grid};
  common_tape(both, "grid_sample", where);
  const Shape image = x.shape();
  const Shape places = grid.shape();
  const DType dtype = promote(x.dtype(), grid.dtype());
  if (!is_floating(dtype)) {
    throw DTypeError("grid_sample",
                     "takes floating dtypes, not " + to_string(x.type()) + "; cast it first",
                     where);
  }
  using enum Interpolation;
  require_enumerator(options.interpolation, {nearest, linear, cubic}, "grid_sample",
                     "the interpolation", where);
  require_enumerator(options.padding, {GridPadding::zeros, GridPadding::border}, "grid_sample",
                     "the padding", where);
  if (options.interpolation == cubic) {
    throw ArgumentError("grid_sample", "has no cubic interpolation; give nearest or linear", where);
  }
  const int rank = image.rank();
  if (rank < 4 || rank > 5 || image[2] == 0 || image[3] == 0 || image[-1] == 0) {
    throw ShapeError("grid_sample",
                     "input " + to_string(image) +
                         " is not a non-empty (batch, channels, height, width) or (batch, "
                         "channels, depth, height, width); reshape it",
                     where);
  }
  const int coordinates = rank - 2;
  if (places.rank() != rank || places[0] != image[0] || places[-1] != coordinates) {
    throw ShapeError("grid_sample",
                     "grid " + to_string(places) + " does not fit input " + to_string(image) +
                         "; give (batch, " + (rank == 5 ? "depth, " : "") + "height, width, " +
                         std::to_string(coordinates) + ") with the input's batch",
                     where);
  }
  Shape result = image;
  std::int64_t count = 1;
  std::array<SampledAxis, 3> axes{grid_axis(1, options), {}, {}};
  for (int axis = 2; axis < rank; ++axis) {
    result[axis] = places[axis - 1];
    count *= places[axis - 1];
    axes[static_cast<std::size_t>(axis + 3 - rank)] = grid_axis(image[axis], options);
  }
  const GridAttributes a{image[0], image[1], count, axes, coordinates, options.interpolation};
  return record(grid_sample_operation, {cast(x, dtype, where), cast(grid, dtype, where)}, result, a,
                where);
}

}  // namespace palimpsest
