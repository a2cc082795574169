#include "autodiff/operations/pool.h"

#include <algorithm>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

/// One axis of a window: the elements it covers, and how many of them divide an average.
struct Span {
  std::int64_t begin, end, count;
};

struct PoolAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool adaptive = false;

  Span span(std::int64_t q, bool include_padding) const {
    if (adaptive) {
      const std::int64_t begin = q * input / output;
      const std::int64_t end = ((q + 1) * input + output - 1) / output;
      return {begin, end, end - begin};
    }
    const std::int64_t first = q * stride - padding;
    const std::int64_t last = std::min(first + kernel, input + padding);
    const std::int64_t begin = std::max<std::int64_t>(first, 0);
    const std::int64_t end = std::min(last, input);
    return {begin, end, include_padding ? last - first : end - begin};
  }
};

struct PoolAttributes {
  std::array<PoolAxis, 3> axes;
  bool include_padding = true;

  std::int64_t input_size() const { return axes[0].input * axes[1].input * axes[2].input; }
  std::int64_t output_size() const { return axes[0].output * axes[1].output * axes[2].output; }
};

/// The windows of one pooling, spans listed axis by axis.
class Windows {
 public:
  explicit Windows(const PoolAttributes& pool) : pool_(pool) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      for (std::int64_t q = 0; q < pool.axes[axis].output; ++q) {
        spans_[axis].push_back(pool.axes[axis].span(q, pool.include_padding));
      }
    }
  }

  /// Calls f(first element, one past the last) for every row of the window.
  template <class F>
  void for_rows(const Span& i, const Span& j, const Span& k, F f) const {
    for (std::int64_t a = i.begin; a < i.end; ++a) {
      for (std::int64_t b = j.begin; b < j.end; ++b) {
        const std::int64_t row = (a * pool_.axes[1].input + b) * pool_.axes[2].input;
        f(row + k.begin, row + k.end);
      }
    }
  }

  /// Calls f(position, spans along the three axes) for every window of one image and channel.
  template <class F>
  void for_windows(F f) const {
    std::int64_t position = 0;
    for (const Span& i : spans_[0])
      for (const Span& j : spans_[1])
        for (const Span& k : spans_[2]) f(position++, i, j, k);
  }

 private:
  const PoolAttributes& pool_;
  std::vector<Span> spans_[3];
};

/// Calls f(windows, plane) for every image and channel, in parallel: windows may overlap, so a
/// plane's are for one thread.
template <class F>
void for_planes(const PoolAttributes& pool, std::int64_t planes, F f) {
  const Windows windows(pool);
  const auto cost = static_cast<double>(pool.input_size() + 4 * pool.output_size());
  parallel_chunks(planes, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) f(windows, plane);
  });
}

std::int64_t planes_of(const Operand& operand) { return operand.shape()[0] * operand.shape()[1]; }

/// Calls f(position, element) with the first largest element of every window of x.
template <class T, class F>
void for_maxima(const Windows& windows, const T* x, F f) {
  windows.for_windows([&](std::int64_t position, const Span& i, const Span& j, const Span& k) {
    std::int64_t best = -1;
    windows.for_rows(i, j, k, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; ++at) {
        // Unordered with everything, a NaN is taken, and stays.
        if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best])) best = at;
      }
    });
    f(position, best);
  });
}

/// y = what input `source` has where x, input 0, is largest.
void pick(const KernelCall& call, std::size_t source) {
  const auto& pool = call.attributes.as<PoolAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    for_planes(pool, planes_of(call.output()), [&](const Windows& windows, std::int64_t plane) {
      const T* x = call.input(0).as<T>() + plane * pool.input_size();
      const T* from = call.input(source).as<T>() + plane * pool.input_size();
      T* y = call.output().as<T>() + plane * pool.output_size();
      for_maxima(windows, x,
                 [&](std::int64_t position, std::int64_t best) { y[position] = from[best]; });
    });
  });
}

/// Inputs x and ȳ.
void compute_max_adjoint(const KernelCall& call) {
  const auto& pool = call.attributes.as<PoolAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    for_planes(pool, planes_of(call.output()), [&](const Windows& windows, std::int64_t plane) {
      const T* x = call.input(0).as<T>() + plane * pool.input_size();
      const T* y = call.input(1).as<T>() + plane * pool.output_size();
      T* to = call.output().as<T>() + plane * pool.input_size();
      std::fill_n(to, pool.input_size(), T(0));
      for_maxima(windows, x,
                 [&](std::int64_t position, std::int64_t best) { to[best] += y[position]; });
    });
  });
}

void compute_average(const KernelCall& call) {
  const auto& pool = call.attributes.as<PoolAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    for_planes(pool, planes_of(call.output()), [&](const Windows& windows, std::int64_t plane) {
      const T* x = call.input().as<T>() + plane * pool.input_size();
      T* y = call.output().as<T>() + plane * pool.output_size();
      windows.for_windows([&](std::int64_t position, const Span& i, const Span& j, const Span& k) {
        T total(0);
        windows.for_rows(i, j, k, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t at = begin; at < end; ++at) total += x[at];
        });
        y[position] = total / static_cast<T>(i.count * j.count * k.count);
      });
    });
  });
}

void compute_average_adjoint(const KernelCall& call) {
  const auto& pool = call.attributes.as<PoolAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    for_planes(pool, planes_of(call.output()), [&](const Windows& windows, std::int64_t plane) {
      const T* y = call.input().as<T>() + plane * pool.output_size();
      T* x = call.output().as<T>() + plane * pool.input_size();
      std::fill_n(x, pool.input_size(), T(0));
      windows.for_windows([&](std::int64_t position, const Span& i, const Span& j, const Span& k) {
        const T share = y[position] / static_cast<T>(i.count * j.count * k.count);
        windows.for_rows(i, j, k, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t at = begin; at < end; ++at) x[at] += share;
        });
      });
    });
  });
}

Cost cost(const NodeView& node) {
  const auto& axes = node.attributes().as<PoolAttributes>().axes;
  Cost cost{0, static_cast<double>(node.output().bytes())};
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    cost.bytes += static_cast<double>(node.input(i).bytes());
  }
  const Shape shape = node.output().shape;
  cost.flops = static_cast<double>(shape[0] * shape[1]);
  for (const PoolAxis& axis : axes) {
    const std::int64_t width =
        axis.adaptive ? (axis.input + axis.output - 1) / axis.output : axis.kernel;
    cost.flops *= static_cast<double>(axis.output * width);
  }
  return cost;
}

Var record(const Operation& operation, std::initializer_list<Var> inputs, const Shape& shape,
           const PoolAttributes& pool, const Where& where) {
  const ValueType type{shape, inputs.begin()->dtype()};
  return inputs.begin()->tape().record(operation, std::span(inputs.begin(), inputs.size()),
                                       {&type, 1}, pool, where);
}

Shape output_shape(const Shape& input, const PoolAttributes& pool) {
  return with_spatial_sizes(input, 2,
                            {pool.axes[0].output, pool.axes[1].output, pool.axes[2].output});
}

// x decides where from, so a derivative flows through the other operand only.
extern const Operation max_pool_pick_operation;

const Operation max_pool_adjoint_operation{
    .name = "max_pool_adjoint",
    .formula = "z(argmax of window q of x) += y(q); ȳ = z̄ picked where x is largest, x̄ = 0",
    .summary = "adjoint of max_pool",
    .compute = compute_max_adjoint,
    .vjp =
        [](const Pullback& p) {
          const auto pool = p.attributes().as<PoolAttributes>();
          if (!p.wants(1)) return;
          p.set(1, record(max_pool_pick_operation, {p.input(0), p.adjoint()}, p.input(1).shape(),
                          pool, p.where()));
        },
    .cost = cost,
};

void pull_back_pick(const Pullback& p, std::size_t picked) {
  const auto pool = p.attributes().as<PoolAttributes>();
  if (!p.wants(picked)) return;
  p.set(picked, record(max_pool_adjoint_operation, {p.input(0), p.adjoint()}, p.input(0).shape(),
                       pool, p.where()));
}

const Operation max_pool_pick_operation{
    .name = "max_pool_pick",
    .formula = "y(q) = z(argmax of window q of x); z̄ = ȳ where x is largest, x̄ = 0",
    .summary = "elements from the places that max_pool takes",
    .compute = [](const KernelCall& call) { pick(call, 1); },
    .vjp = [](const Pullback& p) { pull_back_pick(p, 1); },
    .cost = cost,
};

const Operation max_pool_operation{
    .name = "max_pool",
    .formula = "y(q) = max of window q of x; x̄ = ȳ at the first maximum",
    .summary = "largest element of each window; plain, adaptive or global",
    .compute = [](const KernelCall& call) { pick(call, 0); },
    .vjp = [](const Pullback& p) { pull_back_pick(p, 0); },
    .cost = cost,
};

extern const Operation average_pool_operation;

const Operation average_pool_adjoint_operation{
    .name = "average_pool_adjoint",
    .formula = "x = Σ y(q)/count over the windows q of an element; ȳ = average_pool(x̄)",
    .summary = "adjoint of average_pool",
    .compute = compute_average_adjoint,
    .vjp =
        [](const Pullback& p) {
          const auto pool = p.attributes().as<PoolAttributes>();
          p.set(0,
                record(average_pool_operation, {p.adjoint()}, p.input().shape(), pool, p.where()));
        },
    .cost = cost,
};

const Operation average_pool_operation{
    .name = "average_pool",
    .formula = "y(q) = Σ x/count over window q; x̄ = Σ ȳ(q)/count over the windows of an element",
    .summary = "mean of each window; plain or adaptive",
    .compute = compute_average,
    .vjp =
        [](const Pullback& p) {
          const auto pool = p.attributes().as<PoolAttributes>();
          p.set(0, record(average_pool_adjoint_operation, {p.adjoint()}, p.input().shape(), pool,
                          p.where()));
        },
    .cost = cost,
};

const Operation* const family[] = {&max_pool_operation, &max_pool_pick_operation,
                                   &max_pool_adjoint_operation, &average_pool_operation,
                                   &average_pool_adjoint_operation};

int spatial_axes(const char* name, const Var& x, const Where& where) {
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
  return shape.rank() - 2;
}

PoolAttributes windowed(const char* name, const Var& x, const PerAxis& kernel,
                        const AveragePoolOptions& options, const Where& where) {
  const int axes = spatial_axes(name, x, where);
  const Shape shape = x.shape();
  const auto input = spatial_sizes(shape, 2);
  const auto kernels = kernel.fill(axes, 1, 1, name, "kernel", where);
  const auto strides = options.stride.fill(axes, 1, 0, name, "stride", where);
  const auto paddings = options.padding.fill(axes, 0, 0, name, "padding", where);
  PoolAttributes pool;
  pool.include_padding = options.count_include_pad;
  for (std::size_t i = 0; i < 3; ++i) {
    PoolAxis& axis = pool.axes[i];
    axis = {input[i], 1, kernels[i], strides[i] == 0 ? kernels[i] : strides[i], paddings[i], false};
    if (2 * axis.padding > axis.kernel) {
      throw ArgumentError(name,
                          "padding " + std::to_string(axis.padding) +
                              " is more than half of kernel " + std::to_string(axis.kernel) +
                              ": windows would lie outside the input",
                          where);
    }
    const std::int64_t slack = axis.input + 2 * axis.padding - axis.kernel;
    if (slack < 0 || axis.input == 0) {
      throw ShapeError(name,
                       "kernel " + std::to_string(axis.kernel) +
                           " is larger than an axis of input " + to_string(shape) +
                           " with padding " + std::to_string(axis.padding) +
                           "; use a smaller kernel",
                       where);
    }
    axis.output = (slack + (options.ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
    if ((axis.output - 1) * axis.stride >= axis.input + axis.padding) --axis.output;
  }
  return pool;
}

PoolAttributes adaptive(const char* name, const Var& x, const PerAxis& sizes, const Where& where) {
  const int axes = spatial_axes(name, x, where);
  const auto input = spatial_sizes(x.shape(), 2);
  const auto output = sizes.fill(axes, 1, 1, name, "size", where);
  PoolAttributes pool;
  for (std::size_t i = 0; i < 3; ++i) {
    if (input[i] == 0) {
      throw ShapeError(name, "input " + to_string(x.shape()) + " has an axis without elements",
                       where);
    }
    pool.axes[i] = {.input = input[i], .output = output[i], .adaptive = true};
  }
  return pool;
}

}  // namespace

std::span<const Operation* const> pool_operations() { return family; }

Var max_pool(const Var& x, const PerAxis& kernel, const PoolOptions& options, Where where) {
  const PoolAttributes pool = windowed(
      "max_pool", x, kernel, {options.stride, options.padding, options.ceil_mode, true}, where);
  return record(max_pool_operation, {x}, output_shape(x.shape(), pool), pool, where);
}

Var average_pool(const Var& x, const PerAxis& kernel, const AveragePoolOptions& options,
                 Where where) {
  const PoolAttributes pool = windowed("average_pool", x, kernel, options, where);
  return record(average_pool_operation, {x}, output_shape(x.shape(), pool), pool, where);
}

Var adaptive_max_pool(const Var& x, const PerAxis& sizes, Where where) {
  const PoolAttributes pool = adaptive("adaptive_max_pool", x, sizes, where);
  return record(max_pool_operation, {x}, output_shape(x.shape(), pool), pool, where);
}

Var adaptive_average_pool(const Var& x, const PerAxis& sizes, Where where) {
  const PoolAttributes pool = adaptive("adaptive_average_pool", x, sizes, where);
  return record(average_pool_operation, {x}, output_shape(x.shape(), pool), pool, where);
}

Var global_max_pool(const Var& x, Where where) {
  const PoolAttributes pool = adaptive("global_max_pool", x, 1, where);
  return record(max_pool_operation, {x}, output_shape(x.shape(), pool), pool, where);
}

Var global_average_pool(const Var& x, Where where) {
  Axes axes;
  for (int axis = 0; axis < spatial_axes("global_average_pool", x, where); ++axis) {
    axes.push_back(axis + 2);
  }
  return mean(x, axes, true, where);
}

}  // namespace palimpsest
