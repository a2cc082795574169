#pragma once

#include <cstdint>

namespace palimpsest {

/// A batch of lines: `n` elements, `stride` apart, for each of `columns` adjacent positions, at
/// most `most_columns`. A contiguous line is {n, 1, 1}.
struct Lines {
  static constexpr std::int64_t most_columns = 64;

  std::int64_t n;
  std::int64_t stride;
  std::int64_t columns;
};

/// The inner loops of softmax over lines. All element arrays have the same layout; `largest` and
/// `log_total` hold one number per column. Sums are accumulated in f64.
template <class T>
struct SoftmaxKernels {
  void (*softmax)(const Lines&, const T* x, T* y);
  void (*log_softmax)(const Lines&, const T* x, T* y);
  /// dx = y·(dy − Σ dy·y)
  void (*softmax_adjoint)(const Lines&, const T* dy, const T* y, T* dx);
  /// dx = dy − exp(y)·Σ dy
  void (*log_softmax_adjoint)(const Lines&, const T* dy, const T* y, T* dx);
  /// log Σ exp(x) = largest + log_total. They are returned separately so that differences are not
  /// rounded twice.
  void (*log_sum_exp)(const Lines&, const T* x, T* largest, T* log_total);
};

}  // namespace palimpsest
