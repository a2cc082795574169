#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/enumerators.h"
#include "autodiff/execute.h"
#include "autodiff/gradient.h"
#include "autodiff/kernels/shares.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

struct ResizeAttributes {
  std::array<std::int64_t, 3> input;
  std::array<std::int64_t, 3> output;
  ResizeOptions options;

  bool operator==(const ResizeAttributes&) const = default;

  std::int64_t input_size() const { return input[0] * input[1] * input[2]; }
  std::int64_t output_size() const { return output[0] * output[1] * output[2]; }
};

/// The elements along one axis that an output position reads, and their weights, which add up to 1.
struct Taps {
  std::size_t count;
  std::array<std::int64_t, 4> element;
  std::array<double, 4> weight;
};

/// The weights of the four elements around a position, the second of which is `fraction` before it.
/// Keys (1981), with PyTorch's constant −3/4.
std::array<double, 4> cubic_weights(double fraction) {
  constexpr double a = -0.75;
  const auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(1 + fraction), near(fraction), near(1 - fraction), far(2 - fraction)};
}

std::vector<Taps> taps_of(std::int64_t input, std::int64_t output, const ResizeOptions& options) {
  const bool cubic = options.interpolation == Interpolation::cubic;
  std::vector<Taps> positions;
  for (std::int64_t q = 0; q < output; ++q) {
    // An axis that keeps its size, such as one that is missing, is copied.
    if (options.interpolation == Interpolation::nearest || input == output) {
      positions.push_back({1, {q * input / output}, {1}});
      continue;
    }
    const auto in = static_cast<double>(input);
    const auto out = static_cast<double>(output);
    const auto at = static_cast<double>(q);
    double place = options.align_corners ? (output > 1 ? at * (in - 1) / (out - 1) : 0)
                                         : (at + 0.5) * in / out - 0.5;
    if (cubic) {
      const double low = std::floor(place);
      Taps taps{4, {}, cubic_weights(place - low)};
      for (std::size_t i = 0; i < 4; ++i) {
        const auto element = static_cast<std::int64_t>(low) - 1 + static_cast<std::int64_t>(i);
        taps.element[i] = std::clamp<std::int64_t>(element, 0, input - 1);
      }
      positions.push_back(taps);
      continue;
    }
    place = std::max(0.0, place);
    const auto low = std::min(static_cast<std::int64_t>(place), input - 1);
    const double fraction = place - static_cast<double>(low);
    if (low + 1 == input || fraction == 0) {
      positions.push_back({1, {low}, {1}});
    } else {
      positions.push_back({2, {low, low + 1}, {1 - fraction, fraction}});
    }
  }
  return positions;
}

/// A row along the last axis of the input and its weight for one row of the output.
struct WeightedRow {
  std::int64_t first;
  double weight;
};

/// Calls f(first element, rows) for every row of the output, with the input rows it interpolates.
template <class F>
void for_rows(const ResizeAttributes& r, const std::vector<Taps>* axes, F f) {
  std::int64_t to = 0;
  for (const Taps& i : axes[0]) {
    for (const Taps& j : axes[1]) {
      WeightedRow rows[16];
      std::size_t count = 0;
      for (std::size_t a = 0; a < i.count; ++a) {
        for (std::size_t b = 0; b < j.count; ++b) {
          rows[count++] = {(i.element[a] * r.input[1] + j.element[b]) * r.input[2],
                           i.weight[a] * j.weight[b]};
        }
      }
      f(to, std::span<const WeightedRow>(rows, count));
      to += r.output[2];
    }
  }
}

/// Distributes images and channels; each worker has memory for a row of the input.
Shares shares(const ResizeAttributes& r, std::int64_t planes, int threads) {
  const auto cost = static_cast<double>(4 * r.input_size() + 4 * r.output_size());
  return {planes, grain_for(cost), aligned(r.input[2] * Bytes{sizeof(double)}), threads};
}

Bytes workspace(const NodeView& node, int threads) {
  const Shape shape = node.output().shape;
  return shares(node.attributes().as<ResizeAttributes>(), shape[0] * shape[1], threads).bytes();
}

/// Calls f(x plane, y plane, attributes, interpolation of the three axes, memory for a row of x)
/// for every image and channel.
template <class T, class F>
void for_planes(const KernelCall& call, const Operand& x, const Operand& y, F f) {
  const auto& r = call.attributes.as<ResizeAttributes>();
  std::vector<Taps> axes[3];
  for (std::size_t a = 0; a < 3; ++a) axes[a] = taps_of(r.input[a], r.output[a], r.options);
  const std::int64_t planes = y.shape()[0] * y.shape()[1];
  shares(r, planes, call.threads)
      .run(call.workspace, [&](std::int64_t begin, std::int64_t end, std::byte* share) {
        for (std::int64_t plane = begin; plane < end; ++plane) {
          f(x.as<T>() + plane * r.input_size(), y.as<T>() + plane * r.output_size(), r, axes,
            reinterpret_cast<T*>(share));
        }
      });
}

/// The weighted sum of rows of x. Returns a single row in place, else the result in `space`.
template <class T>
const T* blend(const T* x, std::span<const WeightedRow> rows, T* space, std::int64_t size) {
  if (rows.size() == 1) return x + rows[0].first;  // its weight is 1
  std::fill_n(space, size, T(0));
  for (const WeightedRow& row : rows) {
    const auto weight = static_cast<T>(row.weight);
    const T* from = x + row.first;
    for (std::int64_t k = 0; k < size; ++k) space[k] += weight * from[k];
  }
  return space;
}

template <class T>
void compute_resize(const KernelCall& call) {
  const auto plane = [](const T* x, T* y, const auto& r, const auto* axes, T* line) {
    for_rows(r, axes, [&](std::int64_t to, std::span<const WeightedRow> rows) {
      const T* row = blend(x, rows, line, r.input[2]);
      T* target = y + to;
      for (const Taps& q : axes[2]) {
        T sum = static_cast<T>(q.weight[0]) * row[q.element[0]];
        for (std::size_t i = 1; i < q.count; ++i) {
          sum += static_cast<T>(q.weight[i]) * row[q.element[i]];
        }
        *target++ = sum;
      }
    });
  };
  for_planes<T>(call, call.input(), call.output(), plane);
}

template <class T>
void compute_adjoint(const KernelCall& call) {
  const auto plane = [](T* x, const T* y, const auto& r, const auto* axes, T* line) {
    std::fill_n(x, r.input_size(), T(0));
    for_rows(r, axes, [&](std::int64_t from, std::span<const WeightedRow> rows) {
      std::fill_n(line, r.input[2], T(0));
      const T* source = y + from;
      for (const Taps& q : axes[2]) {
        for (std::size_t i = 0; i < q.count; ++i) {
          line[q.element[i]] += static_cast<T>(q.weight[i]) * *source;
        }
        ++source;
      }
      for (const WeightedRow& row : rows) {
        const auto weight = static_cast<T>(row.weight);
        for (std::int64_t k = 0; k < r.input[2]; ++k) x[row.first + k] += weight * line[k];
      }
    });
  };
  for_planes<T>(call, call.output(), call.input(), plane);
}

Cost resize_cost(const NodeView& node) {
  const auto& r = node.attributes().as<ResizeAttributes>();
  const Shape shape = node.output().shape;
  double taps = 0;
  switch (r.options.interpolation) {
    case Interpolation::nearest:
      taps = 1;
      break;
    case Interpolation::linear:
      taps = 4;
      break;
    case Interpolation::cubic:
      taps = 8;
      break;
  }
  return {2 * taps * static_cast<double>(shape[0] * shape[1] * r.output_size()),
          static_cast<double>(node.input(0).bytes() + node.output().bytes())};
}

Var record(const Operation& operation, const Var& x, const std::array<std::int64_t, 3>& sizes,
           const ResizeAttributes& r, const Where& where) {
  const ValueType type{with_spatial_sizes(x.shape(), 2, sizes), x.dtype()};
  return x.tape().record(operation, {&x, 1}, {&type, 1}, r, where);
}

extern const Operation resize_operation;

const Operation resize_adjoint_operation{
    .name = "resize_adjoint",
    .formula = "x = the adjoint of resize at y; ȳ = resize(x̄)",
    .summary = "adjoint of resize",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_adjoint<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const auto r = p.attributes().as<ResizeAttributes>();
          p.set(0, record(resize_operation, p.adjoint(), r.output, r, p.where()));
        },
    .cost = resize_cost,
    .workspace = workspace,
    .mixed = MixedPrecision::follows,
};

const Operation resize_operation{
    .name = "resize",
    .formula = "y(q) = x interpolated at q's position; x̄ = the adjoint at ȳ",
    .summary = "nearest, (bi)linear or (bi)cubic interpolation to other sizes; upsampling",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_resize<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const auto r = p.attributes().as<ResizeAttributes>();
          p.set(0, record(resize_adjoint_operation, p.adjoint(), r.input, r, p.where()));
        },
    .cost = resize_cost,
    .workspace = workspace,
    .mixed = MixedPrecision::follows,
};

Var resize_to(const char* name, const Var& x, const PerAxis& numbers, bool factors,
              const ResizeOptions& options, const Where& where) {
  const int axes = spatial_axes(name, x, where);
  using enum Interpolation;
  require_enumerator(options.interpolation, {nearest, linear, cubic}, name, "the interpolation",
                     where);
  const Shape shape = x.shape();
  const auto input = spatial_sizes(shape, 2);
  auto output = numbers.fill(axes, 1, 1, name, factors ? "factor" : "size", where);
  for (std::size_t a = 0; a < 3; ++a) {
    if (input[a] == 0) {
      throw ShapeError(name,
                       "input " + to_string(shape) +
                           " has an axis of size 0; give at least one element along each axis",
                       where);
    }
    if (factors) output[a] = multiply_sizes(output[a], input[a]);
  }
  return record(resize_operation, x, output, {input, output, options}, where);
}

void require_image(const char* name, const Var& x, std::int64_t r, const Where& where) {
  require_value(x, name, where);
  // Its square must not overflow.
  if (r < 1 || r > std::numeric_limits<std::int32_t>::max())
    throw ArgumentError(
        name, "r is " + std::to_string(r) + "; give a positive number less than 2³¹", where);
  if (x.rank() == 4) return;
  throw ShapeError(
      name,
      "input " + to_string(x.shape()) + " is not (batch, channels, height, width); reshape it",
      where);
}

}  // namespace

std::span<const Operation* const> resize_operations() {
  static const Operation* const family[] = {&resize_operation, &resize_adjoint_operation};
  return family;
}

Var resize(const Var& x, const PerAxis& sizes, const ResizeOptions& options, Where where) {
  return resize_to("resize", x, sizes, false, options, where);
}

Var upsample(const Var& x, const PerAxis& factors, const ResizeOptions& options, Where where) {
  return resize_to("upsample", x, factors, true, options, where);
}

Var pixel_shuffle(const Var& x, std::int64_t r, Where where) {
  require_image("pixel_shuffle", x, r, where);
  const Shape s = x.shape();
  if (s[1] % (r * r) != 0) {
    throw ShapeError("pixel_shuffle",
                     std::to_string(r * r) + " does not divide the " + std::to_string(s[1]) +
                         " channels of input " + to_string(s) +
                         "; give r² channels for each channel of the result",
                     where);
  }
  const std::int64_t channels = s[1] / (r * r);
  const Var split = reshape(x, Shape{s[0], channels, r, r, s[2], s[3]}, where);
  return reshape(permute(split, {0, 1, 4, 2, 5, 3}, where),
                 Shape{s[0], channels, s[2] * r, s[3] * r}, where);
}

Var pixel_unshuffle(const Var& x, std::int64_t r, Where where) {
  require_image("pixel_unshuffle", x, r, where);
  const Shape s = x.shape();
  if (s[2] % r != 0 || s[3] % r != 0) {
    throw ShapeError("pixel_unshuffle",
                     std::to_string(r) + " does not divide height and width of input " +
                         to_string(s) + "; slice or pad it first",
                     where);
  }
  const Var split = reshape(x, Shape{s[0], s[1], s[2] / r, r, s[3] / r, r}, where);
  return reshape(permute(split, {0, 1, 3, 5, 2, 4}, where),
                 Shape{s[0], s[1] * r * r, s[2] / r, s[3] / r}, where);
}

Var channel_shuffle(const Var& x, std::int64_t groups, Where where) {
  require_value(x, "channel_shuffle", where);
  const Shape shape = x.shape();
  if (shape.rank() < 2) {
    throw ShapeError("channel_shuffle",
                     "input " + to_string(shape) + " is not (batch, channels, …); reshape it",
                     where);
  }
  if (groups < 1 || shape[1] % groups != 0) {
    throw ArgumentError("channel_shuffle",
                        std::to_string(groups) + " groups do not divide the channels of input " +
                            to_string(shape) + "; give a number of groups that does",
                        where);
  }
  require_axes(shape.rank() + 1, "channel_shuffle", where);
  Shape grouped = shape;
  grouped[1] = groups;
  grouped.insert(2, shape[1] / groups);
  return reshape(transpose(reshape(x, grouped, where), 1, 2, where), shape, where);
}

}  // namespace palimpsest
