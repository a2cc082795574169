#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "autodiff/kernels/pool.h"
#include "autodiff/operation.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/per_axis.h"
#include "autodiff/parallel.h"
#include "autodiff/tape.h"

/// The window geometry shared by max and average pooling.
namespace palimpsest {

/// One axis of a window: elements begin, begin + step … before end. `count` is the divisor of an
/// average along this axis.
struct PoolSpan {
  std::int64_t begin, end, step, count;

  std::int64_t taps() const { return (end - begin + step - 1) / step; }
};

struct PoolAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  bool adaptive = false;

  bool operator==(const PoolAxis&) const = default;

  /// Distance from a window's first element to one after its last.
  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
  PoolSpan span(std::int64_t q, bool include_padding) const;
};

struct PoolAttributes {
  std::array<PoolAxis, 3> axes;
  bool include_padding = true;

  bool operator==(const PoolAttributes&) const = default;

  std::int64_t input_size() const { return axes[0].input * axes[1].input * axes[2].input; }
  std::int64_t output_size() const { return axes[0].output * axes[1].output * axes[2].output; }
};

/// The windows of one image and channel, stored as spans per axis.
class PoolWindows {
 public:
  explicit PoolWindows(const PoolAttributes& pool);

  /// Calls f(position, spans along the three axes) for every window.
  template <class F>
  void for_windows(F f) const {
    std::int64_t position = 0;
    for (const PoolSpan& i : spans_[0])
      for (const PoolSpan& j : spans_[1])
        for (const PoolSpan& k : spans_[2]) f(position++, i, j, k);
  }

  /// Calls f(position of the first window, run) for all windows of x, in order. A run has at most
  /// `longest_run` windows.
  template <class T, class F>
  void for_runs(const T* x, F f) const {
    std::int64_t position = 0;
    for (const PoolSpan& i : spans_[0]) {
      for (const PoolSpan& j : spans_[1]) {
        WindowRun<T> run{};
        run.x = x;
        run.size = size_;
        run.taps = {i.taps(), j.taps(), 0};
        run.step = {i.step * rows_ * columns_, j.step * columns_, 0};
        for (const Run& columns : runs_) {
          run.windows = columns.windows;
          run.first = (i.begin * rows_ + j.begin) * columns_ + columns.first.begin;
          run.stride = columns.stride;
          run.taps[2] = columns.first.taps();
          run.step[2] = columns.first.step;
          f(position, run);
          position += run.windows;
        }
      }
    }
  }
  static constexpr std::int64_t longest_run = 64;

  /// Calls f(first element, end) for every row of a window; its elements are k.step apart.
  template <class F>
  void for_rows(const PoolSpan& i, const PoolSpan& j, const PoolSpan& k, F f) const {
    for (std::int64_t a = i.begin; a < i.end; a += i.step) {
      for (std::int64_t b = j.begin; b < j.end; b += j.step) {
        const std::int64_t row = (a * rows_ + b) * columns_;
        f(row + k.begin, row + k.end);
      }
    }
  }

 private:
  /// Consecutive spans of the last axis with equally many taps and a constant distance.
  struct Run {
    PoolSpan first;
    std::int64_t windows, stride;
  };

  std::int64_t size_, rows_, columns_;
  std::vector<PoolSpan> spans_[3];
  std::vector<Run> runs_;
};

/// Calls f(windows, plane) in parallel for every image and channel of `operand`. Windows may
/// overlap, so one thread handles a whole plane.
template <class F>
void for_pool_planes(const PoolAttributes& pool, const Operand& operand, F f) {
  const PoolWindows windows(pool);
  const auto cost = static_cast<double>(pool.input_size() + 4 * pool.output_size());
  const std::int64_t planes = operand.shape()[0] * operand.shape()[1];
  parallel_chunks(planes, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) f(windows, plane);
  });
}

/// One addition or comparison per element of every window.
Cost pool_cost(const NodeView& node);

/// Windows of a kernel; throws as described in pool.h.
PoolAttributes kernel_windows(const char* name, const Var& x, const PerAxis& kernel,
                              const PoolOptions& options, const Where& where);
/// As many windows as `sizes`; throws as described in pool.h.
PoolAttributes adaptive_windows(const char* name, const Var& x, const PerAxis& sizes,
                                Channels channels, const Where& where);

/// Records one output with the first input's dtype.
Var record_pool(const Operation& operation, std::initializer_list<Var> inputs, const Shape& shape,
                const PoolAttributes& pool, const Where& where);
/// Records a pooling of x.
Var record_pool(const Operation& operation, const Var& x, const PoolAttributes& pool,
                Channels channels, const Where& where);

}  // namespace palimpsest
