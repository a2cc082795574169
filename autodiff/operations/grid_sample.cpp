#include <algorithm>
#include <cmath>

#include "autodiff/composition.h"
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
  SampledAxis down, across;
  Interpolation interpolation;

  bool operator==(const GridAttributes&) const = default;
  /// Neighbours of a position along an axis.
  int neighbours() const { return interpolation == Interpolation::nearest ? 1 : 2; }
  std::int64_t image_size() const { return down.size * across.size; }
};

SampledAxis grid_axis(std::int64_t size, const GridSampleOptions& options) {
  const auto n = static_cast<double>(size);
  SampledAxis axis{size, options.align_corners ? (n - 1) / 2 : n / 2, (n - 1) / 2, 0, n - 1};
  // Two elements outside the image, all neighbours are zeros.
  if (options.padding == GridPadding::zeros) axis.low = -2, axis.high = n + 1;
  return axis;
}

/// A position along one axis: its first neighbour, the distance from that, and the derivative of
/// the distance with respect to the grid.
template <class T>
struct Place {
  std::int64_t element;
  T fraction = T(0), slope = T(0);

  Place(const SampledAxis& axis, Interpolation interpolation, T g) {
    const T at = g * static_cast<T>(axis.scale) + static_cast<T>(axis.offset);
    const T low = static_cast<T>(axis.low);
    const T high = static_cast<T>(axis.high);
    const bool inside = at >= low && at <= high;
    const T kept = inside ? at : at > high ? high : low;
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

/// A position in the image: its neighbours, zero outside the image, and their weights.
template <class T>
struct Spot {
  Place<T> down, across;

  Spot(const GridAttributes& a, const T* grid)
      : down(a.down, a.interpolation, grid[1]), across(a.across, a.interpolation, grid[0]) {}

  /// Calls f(element, weight, derivatives of the weight with respect to the two grid coordinates).
  template <class F>
  void for_neighbours(const GridAttributes& a, F f) const {
    for (int i = 0; i < a.neighbours(); ++i) {
      for (int j = 0; j < a.neighbours(); ++j) {
        const std::int64_t row = down.element + i;
        const std::int64_t column = across.element + j;
        if (row < 0 || row >= a.down.size || column < 0 || column >= a.across.size) continue;
        const T vertical = i == 0 ? 1 - down.fraction : down.fraction;
        const T horizontal = j == 0 ? 1 - across.fraction : across.fraction;
        f(row * a.across.size + column, vertical * horizontal,
          vertical * (j == 0 ? -across.slope : across.slope),
          horizontal * (i == 0 ? -down.slope : down.slope));
      }
    }
  }
};

/// Calls f(image and channel, grid of its image) for all planes in parallel.
template <class T, class F>
void for_planes(const GridAttributes& a, const Operand& grid, F f) {
  const double cost = 20.0 * static_cast<double>(a.places);
  parallel_chunks(a.batch * a.channels, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      f(plane, grid.as<T>() + plane / a.channels * a.places * 2);
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
      Spot<T>(a, grid + 2 * q).for_neighbours(a, [&](std::int64_t element, T weight, T, T) {
        total += weight * x[element];
      });
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
      Spot<T>(a, grid + 2 * q).for_neighbours(a, [&](std::int64_t element, T weight, T, T) {
        x[element] += weight * y[q];
      });
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
      const Spot<T> spot(a, call.input(1).as<T>() + 2 * place);
      T across(0), down(0);
      for (std::int64_t c = 0; c < a.channels; ++c, x += a.image_size(), y += a.places) {
        spot.for_neighbours(a, [&](std::int64_t element, T, T by_across, T by_down) {
          across += by_across * x[element] * *y;
          down += by_down * x[element] * *y;
        });
      }
      call.output().as<T>()[2 * place] = across;
      call.output().as<T>()[2 * place + 1] = down;
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
    // A NaN is far outside, as in the kernels.
    const Var at = clamp(where(equal(place, place), place, axis.low), axis.low, axis.high);
    below = stop_gradient(floor(at));
    fraction = at - below;
  }
};

/// x at one neighbour of every position, (batch, channels, places); zero outside the image.
Var neighbour(const GridAttributes& a, const Var& x, const Var& row, const Var& column) {
  const auto last = [](const SampledAxis& axis) { return static_cast<double>(axis.size - 1); };
  const Var kept_row = clamp(row, 0, last(a.down));
  const Var kept_column = clamp(column, 0, last(a.across));
  const Var there =
      cast(equal(kept_row, row), x.dtype()) * cast(equal(kept_column, column), x.dtype());
  const Var index = cast(kept_row, DType::i64) * static_cast<double>(a.across.size) +
                    cast(kept_column, DType::i64);
  const Shape shape{a.batch, a.channels, a.places};
  const Var images = reshape(x, Shape{a.batch, a.channels, a.image_size()});
  return gather(images, 2, broadcast_to(index, shape)) * there;
}

/// grid_sample by recorded operations, which can be differentiated with respect to the grid any
/// number of times. Computed in the compute dtype, since 16 bits cannot distinguish neighbouring
/// positions.
Var composed(const GridAttributes& a, const Var& image, const Var& grid) {
  const DType dtype = compute_dtype(image.dtype());
  const Var x = cast(image, dtype);
  const Var places = reshape(cast(grid, dtype), Shape{a.batch, 1, a.places, 2});
  const RecordedPlace down(a.down, select(places, 3, 1));
  const RecordedPlace across(a.across, select(places, 3, 0));
  const auto row_of = [&](const Var& row) {
    return neighbour(a, x, row, across.below) * (1 - across.fraction) +
           neighbour(a, x, row, across.below + 1) * across.fraction;
  };
  return row_of(down.below) * (1 - down.fraction) + row_of(down.below + 1) * down.fraction;
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
    .summary = "nearest or bilinear interpolation at the points of a grid",
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
  if (image.rank() != 4 || image[2] == 0 || image[3] == 0) {
    throw ShapeError("grid_sample",
                     "input " + to_string(image) +
                         " is not a non-empty (batch, channels, height, width); reshape it",
                     where);
  }
  if (places.rank() != 4 || places[0] != image[0] || places[3] != 2) {
    throw ShapeError("grid_sample",
                     "grid " + to_string(places) + " does not fit input " + to_string(image) +
                         "; give (batch, height, width, 2) with the input's batch",
                     where);
  }
  const GridAttributes a{image[0],
                         image[1],
                         places[1] * places[2],
                         grid_axis(image[2], options),
                         grid_axis(image[3], options),
                         options.interpolation};
  return record(grid_sample_operation, {cast(x, dtype, where), cast(grid, dtype, where)},
                Shape{image[0], image[1], places[1], places[2]}, a, where);
}

}  // namespace palimpsest
