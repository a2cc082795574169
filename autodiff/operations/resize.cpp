#include <algorithm>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

struct ResizeAttributes {
  std::array<std::int64_t, 3> input;
  std::array<std::int64_t, 3> output;
  ResizeOptions options;

  std::int64_t input_size() const { return input[0] * input[1] * input[2]; }
  std::int64_t output_size() const { return output[0] * output[1] * output[2]; }
};

/// A position of one axis is (1 − weight)·element low + weight·element high.
struct Between {
  std::int64_t low, high;
  double weight;
};

std::vector<Between> between(std::int64_t input, std::int64_t output,
                             const ResizeOptions& options) {
  std::vector<Between> positions;
  for (std::int64_t q = 0; q < output; ++q) {
    if (options.interpolation == Interpolation::nearest) {
      positions.push_back({q * input / output, q * input / output, 0});
      continue;
    }
    const auto in = static_cast<double>(input);
    const auto out = static_cast<double>(output);
    const auto at = static_cast<double>(q);
    const double place = options.align_corners ? (output > 1 ? at * (in - 1) / (out - 1) : 0)
                                               : std::max(0.0, (at + 0.5) * in / out - 0.5);
    const auto low = std::min(static_cast<std::int64_t>(place), input - 1);
    const auto high = std::min(low + 1, input - 1);
    positions.push_back({low, high, high > low ? place - static_cast<double>(low) : 0});
  }
  return positions;
}

/// Calls f(first input element, first output element, weight) for every pair of rows along the last
/// axis of which the one contributes to the other.
template <class F>
void for_rows(const ResizeAttributes& r, const std::vector<Between>* axes, F f) {
  for (std::int64_t i = 0; i < r.output[0]; ++i) {
    for (std::int64_t j = 0; j < r.output[1]; ++j) {
      const Between& outer = axes[0][static_cast<std::size_t>(i)];
      const Between& inner = axes[1][static_cast<std::size_t>(j)];
      const auto row = [&](std::int64_t a, std::int64_t b, double weight) {
        if (weight == 0) return;
        f((a * r.input[1] + b) * r.input[2], (i * r.output[1] + j) * r.output[2], weight);
      };
      row(outer.low, inner.low, (1 - outer.weight) * (1 - inner.weight));
      row(outer.low, inner.high, (1 - outer.weight) * inner.weight);
      row(outer.high, inner.low, outer.weight * (1 - inner.weight));
      row(outer.high, inner.high, outer.weight * inner.weight);
    }
  }
}

/// Calls f(x plane, y plane, interpolation of the three axes) for every image and channel.
template <class T, class F>
void for_planes(const KernelCall& call, const Operand& x, const Operand& y, F f) {
  const auto& r = call.attributes.as<ResizeAttributes>();
  std::vector<Between> axes[3];
  for (std::size_t a = 0; a < 3; ++a) axes[a] = between(r.input[a], r.output[a], r.options);
  const auto cost = static_cast<double>(r.input_size() + 4 * r.output_size());
  const std::int64_t planes = y.shape()[0] * y.shape()[1];
  parallel_chunks(planes, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      f(x.as<T>() + plane * r.input_size(), y.as<T>() + plane * r.output_size(), r, axes);
    }
  });
}

template <class T>
void compute(const KernelCall& call) {
  for_planes<T>(call, call.input(), call.output(), [](const T* x, T* y, const auto& r, auto* axes) {
    std::fill_n(y, r.output_size(), T(0));
    for_rows(r, axes, [&](std::int64_t from, std::int64_t to, double factor) {
      const T* row = x + from;
      T* target = y + to;
      for (const Between& q : axes[2]) {
        const T low = static_cast<T>(factor * (1 - q.weight)) * row[q.low];
        *target++ += q.weight == 0 ? low : low + static_cast<T>(factor * q.weight) * row[q.high];
      }
    });
  });
}

template <class T>
void compute_adjoint(const KernelCall& call) {
  for_planes<T>(call, call.output(), call.input(), [](T* x, const T* y, const auto& r, auto* axes) {
    std::fill_n(x, r.input_size(), T(0));
    for_rows(r, axes, [&](std::int64_t to, std::int64_t from, double factor) {
      const T* source = y + from;
      T* row = x + to;
      for (const Between& q : axes[2]) {
        row[q.low] += static_cast<T>(factor * (1 - q.weight)) * *source;
        if (q.weight != 0) row[q.high] += static_cast<T>(factor * q.weight) * *source;
        ++source;
      }
    });
  });
}

Cost cost(const NodeView& node) {
  const auto& r = node.attributes().as<ResizeAttributes>();
  const Shape shape = node.output().shape;
  const double taps = r.options.interpolation == Interpolation::nearest ? 1 : 4;
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
    .cost = cost,
};

const Operation resize_operation{
    .name = "resize",
    .formula = "y(q) = x between the elements around q's place; x̄ = the adjoint at ȳ",
    .summary = "nearest or (bi)linear interpolation at other sizes; upsampling",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const auto r = p.attributes().as<ResizeAttributes>();
          p.set(0, record(resize_adjoint_operation, p.adjoint(), r.input, r, p.where()));
        },
    .cost = cost,
};

const Operation* const family[] = {&resize_operation, &resize_adjoint_operation};

Var resize_to(const char* name, const Var& x, const PerAxis& numbers, bool factors,
              const ResizeOptions& options, const Where& where) {
  const Shape shape = x.shape();
  if (!is_floating(x.dtype())) {
    throw DTypeError(name, "takes floating dtypes, not " + to_string(x.type()) + "; cast it first",
                     where);
  }
  if (shape.rank() < 3 || shape.rank() > 5) {
    throw ShapeError(
        name, "input " + to_string(shape) + " is not (batch, channels, 1 to 3 sizes); reshape it",
        where);
  }
  const auto input = spatial_sizes(shape, 2);
  auto output = numbers.fill(shape.rank() - 2, 1, 1, name, factors ? "factor" : "size", where);
  for (std::size_t a = 0; a < 3; ++a) {
    if (input[a] == 0) {
      throw ShapeError(name, "input " + to_string(shape) + " has an axis without elements", where);
    }
    if (factors) output[a] *= input[a];
  }
  return record(resize_operation, x, output, {input, output, options}, where);
}

void require_image(const char* name, const Var& x, std::int64_t r, const Where& where) {
  if (r < 1)
    throw ArgumentError(name, "r is " + std::to_string(r) + "; it must be positive", where);
  if (x.rank() == 4) return;
  throw ShapeError(
      name, "input " + to_string(x.shape()) + " is not (batch, channels, height, width)", where);
}

}  // namespace

std::span<const Operation* const> resize_operations() { return family; }

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
                         " channels of input " + to_string(s),
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
    throw ShapeError(
        "pixel_unshuffle",
        std::to_string(r) + " does not divide height and width of input " + to_string(s), where);
  }
  const Var split = reshape(x, Shape{s[0], s[1], s[2] / r, r, s[3] / r, r}, where);
  return reshape(permute(split, {0, 1, 3, 5, 2, 4}, where),
                 Shape{s[0], s[1] * r * r, s[2] / r, s[3] / r}, where);
}

}  // namespace palimpsest
