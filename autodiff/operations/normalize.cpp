#include "autodiff/operations/normalize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/convert.h"
#include "autodiff/execute.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

struct Statistics {
  double mean = 0;
  double variance = 0;
  double scale = 0;  // 1/√(variance + ε)
};

/// Calls `f(offset, channel, length, step)` for the contiguous runs of one group of statistics. A
/// run has all channels of the group if they are contiguous, else one channel's spatial part.
template <class F>
void for_runs(const Normalization& n, std::int64_t sample, std::int64_t group, F f) {
  const std::int64_t size = n.channels * n.spatial;
  const std::int64_t first = n.over_batch ? 0 : sample;
  const std::int64_t last = n.over_batch ? n.batch : sample + 1;
  for (std::int64_t b = first; b < last; ++b) {
    const std::int64_t offset = (b * n.groups + group) * size;
    const std::int64_t channel = group * n.channels;
    if (n.spatial == 1) {
      f(offset, channel, n.channels, 1);
      continue;
    }
    for (std::int64_t c = 0; c < n.channels; ++c) {
      f(offset + c * n.spatial, channel + c, n.spatial, 0);
    }
  }
}

template <class T>
Statistics statistics(const Normalization& n, const T* x, std::int64_t sample, std::int64_t group) {
  const auto& kernel = kernels().normalize<T>();
  const auto mean_of = [&](auto term) {
    double sum = 0;
    for_runs(n, sample, group, [&](std::int64_t offset, std::int64_t, std::int64_t length, int) {
      sum += term(x + offset, length);
    });
    return sum / static_cast<double>(n.count());
  };
  Statistics result;
  if (n.count() == 0) result.mean = std::numeric_limits<double>::quiet_NaN();
  if (n.centered && n.count() > 0) {
    const std::int64_t first = (n.over_batch ? 0 : sample) * n.groups + group;
    const T pivot = x[first * n.channels * n.spatial];
    result.mean = pivot + mean_of([&](const T* run, std::int64_t length) {
                    return kernel.deviations(run, length, pivot);
                  });
  }
  const T mean = static_cast<T>(result.mean);
  result.variance =
      mean_of([&](const T* run, std::int64_t length) { return kernel.squares(run, length, mean); });
  const double rounding = result.mean - static_cast<double>(mean);
  result.variance -= rounding * rounding;
  if (result.variance < 0) result.variance = 0;  // but NaN stays NaN
  result.scale = 1 / std::sqrt(result.variance + n.epsilon);
  return result;
}

template <class T>
struct Operands {
  const T* dy = nullptr;
  const T* x = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;

  NormalizeRun<T> run(const Statistics& s, std::int64_t offset, std::int64_t channel,
                      std::int64_t length, int step) const {
    const T mean = static_cast<T>(s.mean);
    return {.n = length,
            .x = x + offset,
            .dy = dy == nullptr ? nullptr : dy + offset,
            .out = nullptr,
            .mean = mean,
            .scale = static_cast<T>(s.scale),
            .offset = static_cast<T>((static_cast<double>(mean) - s.mean) * s.scale),
            .weight = weight == nullptr ? nullptr : weight + channel,
            .bias = bias == nullptr ? nullptr : bias + channel,
            .step = step};
  }
};

template <class T>
const T* optional_input(const KernelCall& call, std::size_t i) {
  return call.inputs.size() > i ? call.inputs[i].as<T>() : nullptr;
}

/// Channels processed together when a channel's elements are a row apart.
constexpr std::int64_t most_columns = 64;

/// True if statistics are over the batch and channels are adjacent: the columns of a matrix.
bool is_columns(const Normalization& n) {
  return n.over_batch && n.spatial == 1 && n.channels == 1;
}

/// Calls `f(column, width)` for batches of columns, in parallel.
template <class F>
void for_columns(const Normalization& n, F f) {
  const double cost = 8 * static_cast<double>(n.batch);
  const std::int64_t width = most_columns;
  parallel_chunks((n.groups + width - 1) / width, grain_for(cost * width),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      f(i * width, std::min(width, n.groups - i * width));
                    }
                  });
}

/// Sums `term(row, column)` over the rows of each of `width` columns.
template <class Term>
void sum_columns(const Normalization& n, std::int64_t width, double* sums, Term term) {
  std::fill_n(sums, width, 0.0);
  for (std::int64_t row = 0; row < n.batch; ++row) {
    for (std::int64_t c = 0; c < width; ++c) sums[c] += term(row * n.groups + c, c);
  }
}

struct ColumnStatistics {
  double mean[most_columns] = {};
  double variance[most_columns] = {};
  double scale[most_columns] = {};

  template <class T>
  ColumnStatistics(const Normalization& n, const T* x, std::int64_t width) {
    const double share = 1 / static_cast<double>(n.batch);
    sum_columns(n, width, mean, [&](std::int64_t i, std::int64_t) { return double{x[i]}; });
    for (std::int64_t c = 0; c < width; ++c) mean[c] *= share;
    sum_columns(n, width, variance, [&](std::int64_t i, std::int64_t c) {
      const double deviation = x[i] - mean[c];
      return deviation * deviation;
    });
    for (std::int64_t c = 0; c < width; ++c) {
      variance[c] *= share;
      scale[c] = 1 / std::sqrt(variance[c] + n.epsilon);
    }
  }
};

template <class T>
void forward_columns(const Normalization& n, const Operands<T>& in, T* y, T* mean, T* variance) {
  for_columns(n, [&](std::int64_t column, std::int64_t width) {
    const ColumnStatistics s(n, in.x + column, width);
    double factor[most_columns];
    double shift[most_columns];
    for (std::int64_t c = 0; c < width; ++c) {
      mean[column + c] = static_cast<T>(s.mean[c]);
      variance[column + c] = static_cast<T>(s.variance[c]);
      factor[c] = s.scale[c] * (in.weight == nullptr ? 1.0 : in.weight[column + c]);
      shift[c] = in.bias == nullptr ? 0.0 : in.bias[column + c];
    }
    for (std::int64_t row = 0; row < n.batch; ++row) {
      const std::int64_t first = row * n.groups + column;
      for (std::int64_t c = 0; c < width; ++c) {
        y[first + c] = static_cast<T>((in.x[first + c] - s.mean[c]) * factor[c] + shift[c]);
      }
    }
  });
}

template <class T>
void adjoint_columns(const Normalization& n, const Operands<T>& in, T* dx, T* dweight, T* dbias) {
  for_columns(n, [&](std::int64_t column, std::int64_t width) {
    const ColumnStatistics s(n, in.x + column, width);
    const T* x = in.x + column;
    const T* dy = in.dy + column;
    double plain[most_columns];
    double scaled[most_columns];
    sum_columns(n, width, plain, [&](std::int64_t i, std::int64_t) { return double{dy[i]}; });
    sum_columns(n, width, scaled, [&](std::int64_t i, std::int64_t c) {
      return dy[i] * (x[i] - s.mean[c]) * s.scale[c];
    });
    double factor[most_columns];
    double a[most_columns];
    double b[most_columns];
    for (std::int64_t c = 0; c < width; ++c) {
      if (dweight != nullptr) dweight[column + c] = static_cast<T>(scaled[c]);
      if (dbias != nullptr) dbias[column + c] = static_cast<T>(plain[c]);
      factor[c] = s.scale[c] * (in.weight == nullptr ? 1.0 : in.weight[column + c]);
      a[c] = plain[c] / static_cast<double>(n.batch);
      b[c] = scaled[c] * s.scale[c] / static_cast<double>(n.batch);
    }
    for (std::int64_t row = 0; row < n.batch; ++row) {
      const std::int64_t first = row * n.groups;
      for (std::int64_t c = 0; c < width; ++c) {
        const double along = dy[first + c] - a[c] - (x[first + c] - s.mean[c]) * b[c];
        dx[first + column + c] = static_cast<T>(factor[c] * along);
      }
    }
  });
}

template <class T>
void forward(const KernelCall& call, const Normalization& n) {
  const Operands<T> in{nullptr, call.input(0).as<T>(), optional_input<T>(call, 1),
                       optional_input<T>(call, 2)};
  T* y = call.output(0).as<T>();
  T* mean = n.over_batch ? call.output(1).as<T>() : nullptr;
  T* variance = n.over_batch ? call.output(2).as<T>() : nullptr;
  if (is_columns(n)) return forward_columns(n, in, y, mean, variance);
  const std::int64_t tasks = (n.over_batch ? 1 : n.batch) * n.groups;
  const double cost = 6 * static_cast<double>(n.count());
  parallel_chunks(tasks, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t group = task % n.groups;
      const Statistics s = statistics(n, in.x, task / n.groups, group);
      if (n.over_batch) {
        mean[group] = static_cast<T>(s.mean);
        variance[group] = static_cast<T>(s.variance);
      }
      for_runs(n, task / n.groups, group,
               [&](std::int64_t offset, std::int64_t channel, std::int64_t length, int step) {
                 NormalizeRun<T> run = in.run(s, offset, channel, length, step);
                 run.out = y + offset;
                 kernels().normalize<T>().normalize(run);
               });
    }
  });
}

/// Partition of the samples for partial sums. It depends on the shape only.
struct Chunks {
  std::int64_t size;
  std::int64_t count;

  explicit Chunks(const Normalization& n) {
    constexpr std::int64_t most = 32;
    // Large enough that a chunk's data outweighs its partial sums.
    const std::int64_t least = n.spatial >= 32 ? 1 : 32 / std::max<std::int64_t>(1, n.spatial);
    size = n.over_batch ? n.batch : std::max(least, (n.batch + most - 1) / most);
    count = size == 0 ? 0 : (n.batch + size - 1) / size;
  }
};

/// dx of one group of statistics. Adds its part of dweight and dbias unless they are null.
template <class T>
void adjoint_group(const Normalization& n, const Operands<T>& in, std::int64_t sample,
                   std::int64_t group, T* dx, double* dweight, double* dbias) {
  const auto& kernel = kernels().normalize<T>();
  const Statistics s = statistics(n, in.x, sample, group);
  double sums[2] = {};
  for_runs(n, sample, group,
           [&](std::int64_t offset, std::int64_t channel, std::int64_t length, int step) {
             const NormalizeRun<T> run = in.run(s, offset, channel, length, step);
             kernel.adjoint_sums(run, sums);
             if (dweight != nullptr) kernel.channel_sums(run, dweight + channel, dbias + channel);
           });
  const double share = 1 / static_cast<double>(n.count());
  const T a = n.centered ? static_cast<T>(sums[0] * share) : T(0);
  const T b = static_cast<T>(sums[1] * share);
  for_runs(n, sample, group,
           [&](std::int64_t offset, std::int64_t channel, std::int64_t length, int step) {
             NormalizeRun<T> run = in.run(s, offset, channel, length, step);
             run.out = dx + offset;
             kernel.adjoint(run, a, b);
           });
}

template <class T>
void adjoint(const KernelCall& call, const Normalization& n) {
  const Operands<T> in{call.input(0).as<T>(), call.input(1).as<T>(), optional_input<T>(call, 2),
                       nullptr};
  T* dx = call.output(0).as<T>();
  T* dweight = call.outputs.size() > 1 ? call.output(1).as<T>() : nullptr;
  T* dbias = call.outputs.size() > 2 ? call.output(2).as<T>() : nullptr;
  if (is_columns(n)) return adjoint_columns(n, in, dx, dweight, dbias);

  const Chunks chunks(n);
  const std::int64_t width = n.groups * n.channels;
  double* partial = reinterpret_cast<double*>(call.workspace.data());
  const auto sums_of = [&](std::int64_t chunk) {
    return dweight == nullptr ? nullptr : partial + chunk * 2 * width;
  };
  if (dweight != nullptr) std::fill_n(partial, chunks.count * 2 * width, 0.0);
  const auto group_of = [&](std::int64_t chunk, std::int64_t sample, std::int64_t group) {
    double* sums = sums_of(chunk);
    adjoint_group(n, in, sample, group, dx, sums, sums == nullptr ? nullptr : sums + width);
  };
  if (n.over_batch) {
    const double cost = 8 * static_cast<double>(n.count());
    parallel_chunks(n.groups, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t group = begin; group < end; ++group) group_of(0, 0, group);
    });
  } else {
    parallel_chunks(chunks.count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t last = std::min(n.batch, (chunk + 1) * chunks.size);
        for (std::int64_t sample = chunk * chunks.size; sample < last; ++sample) {
          for (std::int64_t group = 0; group < n.groups; ++group) group_of(chunk, sample, group);
        }
      }
    });
  }
  if (dweight == nullptr) return;
  for (std::int64_t c = 0; c < width; ++c) {
    double totals[2] = {};
    for (std::int64_t chunk = 0; chunk < chunks.count; ++chunk) {
      totals[0] += sums_of(chunk)[c];
      totals[1] += sums_of(chunk)[width + c];
    }
    dweight[c] = static_cast<T>(totals[0]);
    if (dbias != nullptr) dbias[c] = static_cast<T>(totals[1]);
  }
}

Bytes partial_bytes(const Normalization& n, std::size_t outputs) {
  if (outputs < 2 || is_columns(n)) return 0;
  return Chunks(n).count * 2 * n.groups * n.channels * static_cast<Bytes>(sizeof(double));
}

/// Widens the 16-bit operands of a normalization to f32, some samples at a time. For statistics per
/// sample only. `sampled` inputs and output 0 have a sample axis; the others have the size of a
/// weight.
class Pieces {
 public:
  Pieces(const Normalization& n, std::size_t sampled) : n_(n), sampled_(sampled) {
    constexpr std::int64_t elements = 1 << 16;
    samples_ = std::clamp<std::int64_t>(elements / std::max<std::int64_t>(1, size()), 1,
                                        std::max<std::int64_t>(1, n.batch));
  }

  Bytes bytes(std::size_t inputs, std::size_t outputs) const {
    const auto small = static_cast<Bytes>(inputs - sampled_ + 2 * (outputs - 1));
    return aligned(partial_bytes(part(), outputs)) + 2 * small * aligned(width() * 4) +
           static_cast<Bytes>(sampled_ + 1) * aligned(samples_ * size() * 4);
  }

  /// Calls `compute(call, n)` with f32 operands for each piece.
  template <class F>
  void run(const KernelCall& call, F compute) const {
    std::byte* free = call.workspace.data() + aligned(partial_bytes(part(), call.outputs.size()));
    const auto take = [&](std::int64_t elements, std::size_t element) {
      std::byte* const taken = free;
      free += aligned(elements * static_cast<Bytes>(element));
      return taken;
    };
    std::vector<Operand> wide(call.inputs.begin(), call.inputs.end());
    wide.insert(wide.end(), call.outputs.begin(), call.outputs.end());
    const std::size_t first_output = call.inputs.size();
    std::vector<double*> totals;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      Operand& operand = wide[i];
      const std::int64_t elements = has_samples(i, call) ? samples_ * size() : operand.elements();
      const Operand narrow = operand;
      operand = {take(elements, 4), {Shape{elements}, DType::f32}};
      if (has_samples(i, call)) continue;
      if (i < first_output) {
        convert(narrow, operand);
      } else {
        totals.push_back(reinterpret_cast<double*>(take(elements, 8)));
        std::fill_n(totals.back(), elements, 0.0);
      }
    }
    const std::span<const Operand> all(wide);
    for (std::int64_t first = 0; first < n_.batch; first += samples_) {
      const Normalization n = part(first);
      for (std::size_t i = 0; i < sampled_; ++i) {
        convert(slice(call.inputs[i], first, n.batch), slice(wide[i], 0, n.batch));
      }
      compute(KernelCall{call.attributes, all.first(first_output), all.subspan(first_output),
                         call.workspace, call.threads, call.round},
              n);
      convert(slice(wide[first_output], 0, n.batch), slice(call.outputs[0], first, n.batch));
      for (std::size_t i = 0; i < totals.size(); ++i) {
        const float* const sums = wide[first_output + 1 + i].as<float>();
        for (std::int64_t c = 0; c < width(); ++c) totals[i][c] += static_cast<double>(sums[c]);
      }
    }
    for (std::size_t i = 0; i < totals.size(); ++i) {
      convert({reinterpret_cast<std::byte*>(totals[i]), {Shape{width()}, DType::f64}},
              call.outputs[1 + i]);
    }
  }

 private:
  std::int64_t width() const { return n_.groups * n_.channels; }
  std::int64_t size() const { return width() * n_.spatial; }
  bool has_samples(std::size_t i, const KernelCall& call) const {
    return i < sampled_ || i == call.inputs.size();
  }
  Normalization part(std::int64_t first = 0) const {
    Normalization n = n_;
    n.batch = std::min(samples_, n_.batch - first);
    return n;
  }
  Operand slice(const Operand& operand, std::int64_t first, std::int64_t samples) const {
    return {operand.data + first * size() * size_of(operand.dtype()),
            {Shape{samples * size()}, operand.dtype()}};
  }

  Normalization n_;
  std::size_t sampled_;
  std::int64_t samples_;
};

/// Calls `compute(call, n)`, which does not support 16-bit operands, with widened ones if
/// necessary.
template <void (*compute)(const KernelCall&, const Normalization&)>
void run(const KernelCall& call, std::size_t sampled) {
  const auto& n = call.attributes.as<Normalization>();
  const auto is_narrow = [](const Operand& operand) { return is_half(operand.dtype()); };
  if (std::ranges::none_of(call.inputs, is_narrow) &&
      std::ranges::none_of(call.outputs, is_narrow)) {
    compute(call, n);
  } else if (n.over_batch) {
    compute_widened(
        [](const KernelCall& wide) { compute(wide, wide.attributes.as<Normalization>()); }, call);
  } else {
    Pieces(n, sampled).run(call, compute);
  }
}

Bytes workspace(const NodeView& node, std::size_t sampled) {
  const auto& n = node.attributes().as<Normalization>();
  const Bytes own = sampled > 1 ? partial_bytes(n, node.output_count()) : 0;
  bool is_narrow = false;
  for (std::size_t i = 0; i < node.input_count(); ++i) is_narrow |= is_half(node.input(i).dtype);
  for (std::size_t i = 0; i < node.output_count(); ++i) is_narrow |= is_half(node.output(i).dtype);
  if (!is_narrow) return own;
  if (n.over_batch) return aligned(own) + widening_bytes(node);
  return Pieces(n, sampled).bytes(node.input_count(), node.output_count());
}

void compute_forward(const KernelCall& call, const Normalization& n) {
  visit_floating(call.output().dtype(), [&]<class T>(T) { forward<T>(call, n); });
}

void compute_adjoint(const KernelCall& call, const Normalization& n) {
  visit_floating(call.output().dtype(), [&]<class T>(T) { adjoint<T>(call, n); });
}

}  // namespace

void compute_normalization(const KernelCall& call) { run<compute_forward>(call, 1); }

Bytes normalization_workspace(const NodeView& node, int) { return workspace(node, 1); }

void compute_normalization_adjoint(const KernelCall& call) { run<compute_adjoint>(call, 2); }

Bytes normalization_adjoint_workspace(const NodeView& node, int) { return workspace(node, 2); }

}  // namespace palimpsest
