#include "autodiff/operations/pool_windows.h"

namespace palimpsest {

PoolSpan PoolAxis::span(std::int64_t q, bool include_padding) const {
  if (adaptive) {
    const std::int64_t begin = q * input / output;
    const std::int64_t end = ((q + 1) * input + output - 1) / output;
    return {begin, end, 1, end - begin};
  }
  const std::int64_t first = q * stride - padding;
  const std::int64_t last = std::min(first + extent(), input + padding);
  const std::int64_t skipped = first < 0 ? (-first + dilation - 1) / dilation : 0;
  const std::int64_t begin = first + skipped * dilation;
  const std::int64_t end = std::min(last, input);
  return {begin, end, dilation, include_padding ? last - first : end - begin};
}

PoolWindows::PoolWindows(const PoolAttributes& pool)
    : size_(pool.input_size()), rows_(pool.axes[1].input), columns_(pool.axes[2].input) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (std::int64_t q = 0; q < pool.axes[axis].output; ++q) {
      spans_[axis].push_back(pool.axes[axis].span(q, pool.include_padding));
    }
  }
  for (const PoolSpan& span : spans_[2]) {
    if (!runs_.empty()) {
      Run& run = runs_.back();
      const std::int64_t ahead = span.begin - run.first.begin;
      if (run.windows == 1) run.stride = ahead;
      if (span.taps() == run.first.taps() && ahead == run.windows * run.stride &&
          run.windows < longest_run) {
        ++run.windows;
        continue;
      }
    }
    runs_.push_back({span, 1, 1});
  }
}

Cost pool_cost(const NodeView& node) {
  Cost cost{0, bytes_moved(node)};
  const Shape shape = node.output().shape;
  cost.flops = static_cast<double>(shape[0] * shape[1]);
  for (const PoolAxis& axis : node.attributes().as<PoolAttributes>().axes) {
    const std::int64_t width =
        axis.adaptive ? (axis.input + axis.output - 1) / axis.output : axis.kernel;
    cost.flops *= static_cast<double>(axis.output * width);
  }
  return cost;
}

PoolAttributes kernel_windows(const char* name, const Var& x, const PerAxis& kernel,
                              const PoolOptions& options, const Where& where) {
  const int axes = spatial_axes(name, x, where);
  require_position(options.channels, name, where);
  const Shape shape = x.shape();
  const auto input = spatial_sizes(with_channels_first(shape, options.channels), 2);
  const auto kernels = kernel.fill(axes, 1, 1, name, "kernel", where);
  const auto strides = options.stride.fill(axes, 1, 0, name, "stride", where);
  const auto paddings = options.padding.fill(axes, 0, 0, name, "padding", where);
  const auto dilations = options.dilation.fill(axes, 1, 1, name, "dilation", where);
  PoolAttributes pool;
  for (std::size_t i = 0; i < 3; ++i) {
    PoolAxis& axis = pool.axes[i];
    const std::int64_t stride = strides[i] == 0 ? kernels[i] : strides[i];
    axis = {input[i], 1, kernels[i], stride, paddings[i], dilations[i], false};
    const auto words = [&axis] {
      return "kernel " + std::to_string(axis.kernel) +
             (axis.dilation == 1 ? "" : " with dilation " + std::to_string(axis.dilation));
    };
    if (2 * axis.padding > axis.extent()) {
      throw ArgumentError(name,
                          "padding " + std::to_string(axis.padding) + " is more than half of " +
                              words() + ", so windows would lie outside the input; give at most " +
                              std::to_string(axis.extent() / 2),
                          where);
    }
    const std::int64_t slack = axis.input + 2 * axis.padding - axis.extent();
    if (slack < 0 || axis.input == 0) {
      throw ShapeError(name,
                       words() + " is larger than an axis of input " + to_string(shape) +
                           " with padding " + std::to_string(axis.padding) +
                           "; use a smaller kernel",
                       where);
    }
    axis.output = (slack + (options.ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
    if ((axis.output - 1) * axis.stride >= axis.input + axis.padding) --axis.output;
    // With steps longer than the input, a window can reach from padding to padding without touching
    // it.
    for (std::int64_t q = 0; axis.dilation > axis.input && q < axis.output; ++q) {
      const PoolSpan span = axis.span(q, true);
      if (span.begin < span.end) continue;
      throw ShapeError(name,
                       words() + " and padding " + std::to_string(axis.padding) +
                           " misses all elements of an axis of input " + to_string(shape) +
                           "; use less dilation or padding",
                       where);
    }
  }
  return pool;
}

PoolAttributes adaptive_windows(const char* name, const Var& x, const PerAxis& sizes,
                                Channels channels, const Where& where) {
  const int axes = spatial_axes(name, x, where);
  require_position(channels, name, where);
  const auto input = spatial_sizes(with_channels_first(x.shape(), channels), 2);
  const auto output = sizes.fill(axes, 1, 1, name, "size", where);
  PoolAttributes pool;
  for (std::size_t i = 0; i < 3; ++i) {
    if (input[i] == 0) {
      throw ShapeError(name,
                       "input " + to_string(x.shape()) +
                           " has an axis of size 0; give at least one element along each axis",
                       where);
    }
    pool.axes[i] = {.input = input[i], .output = output[i], .adaptive = true};
  }
  return pool;
}

Var record_pool(const Operation& operation, std::initializer_list<Var> inputs, const Shape& shape,
                const PoolAttributes& pool, const Where& where) {
  const ValueType type{shape, inputs.begin()->dtype()};
  return inputs.begin()->tape().record(operation, std::span(inputs.begin(), inputs.size()),
                                       {&type, 1}, pool, where);
}

Var record_pool(const Operation& operation, const Var& x, const PoolAttributes& pool,
                Channels channels, const Where& where) {
  const Var image = with_channels_first(x, channels, where);
  const Shape shape = with_spatial_sizes(
      image.shape(), 2, {pool.axes[0].output, pool.axes[1].output, pool.axes[2].output});
  return with_channels_at(record_pool(operation, {image}, shape, pool, where), channels, where);
}

}  // namespace palimpsest
