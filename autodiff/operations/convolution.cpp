#include "autodiff/operations/convolution.h"

#include "autodiff/gradient.h"
#include "autodiff/kernels/convolution.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

/// Attributes of the three operations, which share one geometry. Σ ȳ·(w ∗ x) is linear in x, w and
/// ȳ. Each operation is its derivative with respect to one of them, and so are their derivatives.
using Geometry = ConvolutionGeometry;

/// A copy, because attributes live on the tape, which grows during a vjp.
Geometry geometry_of(const Pullback& p) { return p.attributes().as<Geometry>(); }

Var record(const Operation& operation, std::initializer_list<Var> inputs, const Shape& shape,
           const Geometry& g, const Where& where) {
  const Var& first = *inputs.begin();
  const ValueType type{shape, first.dtype()};
  return first.tape().record(operation, std::span(inputs.begin(), inputs.size()), {&type, 1}, g,
                             where);
}

Var record_y(const Var& x, const Var& weight, const Var& bias, const Geometry& g,
             const Where& where);
Var record_x(const Var& y, const Var& weight, const Var& bias, const Geometry& g,
             const Where& where);
Var record_weight(const Var& x, const Var& y, const Shape& shape, const Geometry& g,
                  const Where& where);

Cost convolution_cost(const NodeView& node) {
  const auto& g = node.attributes().as<Geometry>();
  return {2.0 * static_cast<double>(g.batch * g.results * g.output_size()) *
              static_cast<double>(g.channels / g.groups * g.taps()),
          bytes_moved(node)};
}

template <auto single, auto twice>
Bytes workspace(const NodeView& node, int threads) {
  const auto& g = node.attributes().as<Geometry>();
  return compute_dtype(node.output().dtype) == DType::f64 ? twice(g, threads) : single(g, threads);
}

/// Calls f with the first and second input and the bias; the bias is null when there is none.
template <class F>
void with_operands(const KernelCall& call, F f) {
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    const T* bias = call.inputs.size() > 2 ? call.input(2).as<T>() : nullptr;
    f(call.attributes.as<Geometry>(), static_cast<const T*>(call.input(0).as<T>()),
      static_cast<const T*>(call.input(1).as<T>()), bias, call.output().as<T>());
  });
}

/// The adjoint of a bias: ȳ summed over all axes except the channels.
void set_bias_adjoint(const Pullback& p) {
  if (p.input_count() < 3 || !p.wants(2)) return;
  Axes axes{0};
  for (int axis = 2; axis < p.adjoint().rank(); ++axis) axes.push_back(axis);
  p.set(2, sum(p.adjoint(), axes));
}

const Operation convolution_operation{
    .name = "convolution",
    .formula =
        "y(o, q) = b(o) + Σ w(o, c, t)·x(c, q·s − p + t·d); x̄, w̄ = its adjoints at ȳ, "
        "b̄ = Σ ȳ",
    .summary = "1d, 2d or 3d convolution with stride, padding, dilation and groups",
    .compute =
        [](const KernelCall& call) {
          with_operands(call, [&](const Geometry& g, auto x, auto weight, auto bias, auto y) {
            convolve(g, x, weight, bias, y, call.workspace, call.threads, call.epilogue);
          });
        },
    .vjp =
        [](const Pullback& p) {
          const Geometry g = geometry_of(p);
          if (p.wants(0)) p.set(0, record_x(p.adjoint(), p.input(1), {}, g, p.where()));
          if (p.wants(1)) {
            p.set(1, record_weight(p.input(0), p.adjoint(), p.input(1).shape(), g, p.where()));
          }
          set_bias_adjoint(p);
        },
    .cost = convolution_cost,
    .workspace = workspace<convolve_workspace<float>, convolve_workspace<double>>,
    .mixed = MixedPrecision::narrow,
    .fuses_epilogues = true,
};

const Operation transposed_convolution_operation{
    .name = "transposed_convolution",
    .formula =
        "x(c, h) = b(c) + Σ w(o, c, t)·y(o, q) over q·s − p + t·d = h; ȳ = w ∗ x̄, "
        "w̄ = the adjoint at (x̄, y), b̄ = Σ x̄",
    .summary = "adjoint of convolution with respect to its input",
    .compute =
        [](const KernelCall& call) {
          with_operands(call, [&](const Geometry& g, auto y, auto weight, auto bias, auto x) {
            convolve_transposed(g, y, weight, bias, x, call.workspace, call.threads, call.epilogue);
          });
        },
    .vjp =
        [](const Pullback& p) {
          const Geometry g = geometry_of(p);
          if (p.wants(0)) p.set(0, record_y(p.adjoint(), p.input(1), {}, g, p.where()));
          if (p.wants(1)) {
            p.set(1, record_weight(p.adjoint(), p.input(0), p.input(1).shape(), g, p.where()));
          }
          set_bias_adjoint(p);
        },
    .cost = convolution_cost,
    .workspace =
        workspace<convolve_transposed_workspace<float>, convolve_transposed_workspace<double>>,
    .mixed = MixedPrecision::narrow,
    .fuses_epilogues = true,
};

const Operation weight_operation{
    .name = "convolution_weight",
    .formula =
        "w(o, c, t) = Σ y(o, q)·x(c, q·s − p + t·d); x̄ = the adjoint of w̄ ∗ x at y, "
        "ȳ = w̄ ∗ x",
    .summary = "adjoint of convolution with respect to its weights",
    .compute =
        [](const KernelCall& call) {
          with_operands(call, [&](const Geometry& g, auto x, auto y, auto, auto weight) {
            convolve_weight(g, x, y, weight, call.workspace, call.threads);
          });
        },
    .vjp =
        [](const Pullback& p) {
          const Geometry g = geometry_of(p);
          if (p.wants(0)) p.set(0, record_x(p.input(1), p.adjoint(), {}, g, p.where()));
          if (p.wants(1)) p.set(1, record_y(p.input(0), p.adjoint(), {}, g, p.where()));
        },
    .cost = convolution_cost,
    .workspace = workspace<convolve_weight_workspace<float>, convolve_weight_workspace<double>>,
    .mixed = MixedPrecision::narrow,
};

Var record_y(const Var& x, const Var& weight, const Var& bias, const Geometry& g,
             const Where& where) {
  Shape shape = with_spatial_sizes(x.shape(), 2, g.output);
  shape[1] = g.results;
  if (!bias.defined()) return record(convolution_operation, {x, weight}, shape, g, where);
  return record(convolution_operation, {x, weight, bias}, shape, g, where);
}

Var record_x(const Var& y, const Var& weight, const Var& bias, const Geometry& g,
             const Where& where) {
  Shape shape = with_spatial_sizes(y.shape(), 2, g.input);
  shape[1] = g.channels;
  if (!bias.defined())
    return record(transposed_convolution_operation, {y, weight}, shape, g, where);
  return record(transposed_convolution_operation, {y, weight, bias}, shape, g, where);
}

Var record_weight(const Var& x, const Var& y, const Shape& shape, const Geometry& g,
                  const Where& where) {
  return record(weight_operation, {x, y}, shape, g, where);
}

/// The common part of both public functions. It promotes the operands to one floating dtype, checks
/// ranks, and fills the geometry except channels, results and sizes.
struct Call {
  const char* name;
  const Where& where;
  Var x, weight, bias;
  Channels channels;
  Shape given;          // shape of the input as given, for messages
  Shape image, kernel;  // shapes with the input's channels first
  int axes = 0;
  Geometry g;

  Call(const char* operation, const Var& input, const Var& weights, const Var& offsets,
       const ConvolutionOptions& options, const Where& line)
      : name(operation), where(line), channels(options.channels) {
    const Var pair[] = {input, weights};
    common_tape(pair, name, where);
    given = input.shape();
    kernel = weights.shape();
    DType dtype = promote(input.dtype(), weights.dtype());
    if (offsets.defined()) dtype = promote(dtype, offsets.dtype());
    axes = spatial_axes(name, {given, dtype}, where);
    require_position(channels, name, where);
    image = with_channels_first(given, channels);
    x = cast(input, dtype, where);
    weight = cast(weights, dtype, where);
    if (offsets.defined()) bias = cast(offsets, dtype, where);
    if (kernel.rank() != given.rank()) {
      throw ShapeError(name,
                       "weight " + to_string(kernel) + " differs in number of axes from input " +
                           to_string(given) + "; give one kernel size for each spatial axis",
                       where);
    }
    g.batch = image[0];
    g.groups = options.groups;
    g.kernel = spatial_sizes(kernel, 2);
    g.stride = options.stride.fill(axes, 1, 1, name, "stride", where);
    g.padding = options.padding.fill(axes, 0, 0, name, "padding", where);
    g.dilation = options.dilation.fill(axes, 1, 1, name, "dilation", where);
    if (kernel.elements() == 0) {
      throw ShapeError(name,
                       "weight " + to_string(kernel) +
                           " has an axis of size 0; give at least one element along each axis",
                       where);
    }
    if (g.groups < 1 || image[1] % g.groups != 0 || kernel[0] % g.groups != 0) {
      throw ArgumentError(name,
                          std::to_string(g.groups) + " groups do not divide the " +
                              std::to_string(image[1]) + " channels of input " + to_string(given) +
                              " and the first axis of weight " + to_string(kernel) +
                              "; give a divisor of both",
                          where);
    }
  }

  void require_channels(std::int64_t taken) const {
    if (taken == image[1]) return;
    throw ShapeError(name,
                     "input " + to_string(given) + " has " + std::to_string(image[1]) +
                         " channels, but weight " + to_string(kernel) + " with " +
                         std::to_string(g.groups) + " groups takes " + std::to_string(taken) +
                         "; give as many channels",
                     where);
  }

  template <class Record>
  Var recorded(Record record) const {
    const Var image_first = with_channels_first(x, channels, where);
    return with_channels_at(record(image_first, weight, bias, g, where), channels, where);
  }

  void require_bias(std::int64_t results) const {
    if (!bias.defined() || bias.shape() == Shape{results}) return;
    throw ShapeError(
        name,
        "bias " + to_string(bias.shape()) + " does not fit; give " + to_string(Shape{results}),
        where);
  }
};

/// `rank` includes the batch axis, which may be missing.
void require_rank(const char* name, const Var& x, const Var& weight, int rank, const Where& where) {
  require_value(x, name, where);
  require_value(weight, name, where);
  if (x.rank() == rank || (x.rank() == rank - 1 && weight.rank() == rank)) return;
  throw ShapeError(name,
                   "input " + to_string(x.shape()) + " must have " + std::to_string(rank) +
                       " axes: batch, channels and " + std::to_string(rank - 2) +
                       " spatial axes; the batch axis may be omitted",
                   where);
}

/// True when x lacks only the batch axis.
bool is_unbatched(const Var& x, const Var& weight) {
  return x.rank() >= 2 && x.rank() + 1 == weight.rank();
}

/// Applies `f` to x as a batch of one.
template <class F>
Var without_batch(const Var& x, const Where& where, F f) {
  const Var y = f(unsqueeze(x, 0, where));
  Shape shape = y.shape();
  shape.erase(0);
  return reshape(y, shape, where);
}

}  // namespace

std::span<const Operation* const> convolution_operations() {
  static const Operation* const family[] = {&convolution_operation,
                                            &transposed_convolution_operation, &weight_operation};
  return family;
}

Var convolution(const Var& x, const Var& weight, const Var& bias, const ConvolutionOptions& options,
                Where where) {
  const Var pair[] = {x, weight};
  common_tape(pair, "convolution", where);
  if (is_unbatched(x, weight)) {
    return without_batch(x, where, [&](const Var& batch) {
      return convolution(batch, weight, bias, options, where);
    });
  }
  Call call("convolution", x, weight, bias, options, where);
  Geometry& g = call.g;
  g.channels = call.image[1];
  g.results = call.kernel[0];
  call.require_channels(call.kernel[1] * g.groups);
  call.require_bias(g.results);
  g.input = spatial_sizes(call.image, 2);
  for (std::size_t a = 0; a < 3; ++a) {
    const std::int64_t padded = g.input[a] + 2 * g.padding[a];
    const std::int64_t reach = g.dilation[a] * (g.kernel[a] - 1) + 1;
    if (reach > padded) {
      throw ShapeError("convolution",
                       "kernel " + to_string(call.kernel) + " spans " + std::to_string(reach) +
                           " elements, but input " + to_string(call.given) + " with padding has " +
                           std::to_string(padded) + "; pad more or use a smaller kernel",
                       where);
    }
    g.output[a] = (padded - reach) / g.stride[a] + 1;
  }
  return call.recorded(record_y);
}

Var conv1d(const Var& x, const Var& weight, const Var& bias, const ConvolutionOptions& options,
           Where where) {
  require_rank("conv1d", x, weight, 3, where);
  return convolution(x, weight, bias, options, where);
}

Var conv2d(const Var& x, const Var& weight, const Var& bias, const ConvolutionOptions& options,
           Where where) {
  require_rank("conv2d", x, weight, 4, where);
  return convolution(x, weight, bias, options, where);
}

Var conv3d(const Var& x, const Var& weight, const Var& bias, const ConvolutionOptions& options,
           Where where) {
  require_rank("conv3d", x, weight, 5, where);
  return convolution(x, weight, bias, options, where);
}

Var transposed_convolution(const Var& y, const Var& weight, const Var& bias,
                           const TransposedConvolutionOptions& options, Where where) {
  const char* name = "transposed_convolution";
  const Var pair[] = {y, weight};
  common_tape(pair, name, where);
  if (is_unbatched(y, weight)) {
    return without_batch(y, where, [&](const Var& batch) {
      return transposed_convolution(batch, weight, bias, options, where);
    });
  }
  Call call(name, y, weight, bias,
            {options.stride, options.padding, options.dilation, options.groups, options.channels},
            where);
  Geometry& g = call.g;
  g.results = call.image[1];
  g.channels = call.kernel[1] * g.groups;
  call.require_channels(call.kernel[0]);
  call.require_bias(g.channels);
  g.output = spatial_sizes(call.image, 2);
  const auto extra = options.output_padding.fill(call.axes, 0, 0, name, "output_padding", where);
  for (std::size_t a = 0; a < 3; ++a) {
    if (extra[a] >= g.stride[a]) {
      throw ArgumentError(name,
                          "output_padding " + std::to_string(extra[a]) +
                              " must be less than the stride " + std::to_string(g.stride[a]),
                          where);
    }
    g.input[a] = (g.output[a] - 1) * g.stride[a] - 2 * g.padding[a] +
                 g.dilation[a] * (g.kernel[a] - 1) + extra[a] + 1;
    if (g.input[a] < 1) {
      throw ShapeError(name,
                       "padding " + std::to_string(g.padding[a]) +
                           " removes the whole result of input " + to_string(call.given) +
                           " and weight " + to_string(call.kernel) + "; reduce the padding",
                       where);
    }
  }
  return call.recorded(record_x);
}

}  // namespace palimpsest
