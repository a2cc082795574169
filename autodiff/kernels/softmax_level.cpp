#include <Eigen/Core>

#include <cmath>

#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

using Index = std::int64_t;

template <class T>
using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
template <class T>
using In = Eigen::Map<const Array<T>>;
template <class T>
using Out = Eigen::Map<Array<T>>;
/// One number a column, on the stack.
template <class T>
using SoftmaxColumns = Eigen::Array<T, Eigen::Dynamic, 1, 0, Lines::most_columns, 1>;

// Elements summed in their own precision before the sum goes on in f64.
constexpr Index block = 512;
constexpr Index block_rows = 16;

bool is_contiguous(const Lines& lines) { return lines.columns == 1 && lines.stride == 1; }

/// Calls `f(first, length)` for the blocks of [0, n).
template <class F>
void for_blocks(Index n, F f) {
  for (Index first = 0; first < n; first += block) f(first, n - first < block ? n - first : block);
}

/// The sum over each column of what `term(i)` gives for element i of all columns.
template <class T, class Term>
SoftmaxColumns<double> sum_columns(const Lines& lines, Term term) {
  SoftmaxColumns<double> total = SoftmaxColumns<double>::Zero(lines.columns);
  SoftmaxColumns<T> partial(lines.columns);
  for (Index first = 0; first < lines.n; first += block_rows) {
    partial.setZero();
    const Index last = lines.n - first < block_rows ? lines.n : first + block_rows;
    for (Index i = first; i < last; ++i) partial += term(i);
    total += partial.template cast<double>();
  }
  return total;
}

template <class T>
In<T> row(const Lines& lines, const T* x, Index i) {
  return In<T>(x + i * lines.stride, lines.columns);
}
template <class T>
Out<T> row(const Lines& lines, T* x, Index i) {
  return Out<T>(x + i * lines.stride, lines.columns);
}

template <class T>
SoftmaxColumns<T> largest(const Lines& lines, const T* x) {
  SoftmaxColumns<T> best = row(lines, x, 0);
  for (Index i = 1; i < lines.n; ++i) best = best.max(row(lines, x, i));
  return best;
}

template <class T>
double sum_of_exp(In<T> x, T best) {
  double total = 0;
  for_blocks(x.size(), [&](Index first, Index length) {
    total += static_cast<double>((x.segment(first, length) - best).exp().sum());
  });
  return total;
}

template <class T>
void softmax(const Lines& lines, const T* x, T* y) {
  if (lines.n == 0) return;
  if (is_contiguous(lines)) {
    const In<T> input(x, lines.n);
    Out<T> output(y, lines.n);
    const T best = input.maxCoeff();
    double total = 0;
    for_blocks(lines.n, [&](Index first, Index length) {
      output.segment(first, length) = (input.segment(first, length) - best).exp();
      total += static_cast<double>(output.segment(first, length).sum());
    });
    output *= static_cast<T>(1 / total);
    return;
  }
  const SoftmaxColumns<T> best = largest(lines, x);
  const SoftmaxColumns<double> total = sum_columns<T>(lines, [&](Index i) {
    row(lines, y, i) = (row(lines, x, i) - best).exp();
    return row(lines, static_cast<const T*>(y), i);
  });
  const SoftmaxColumns<T> scale = total.inverse().template cast<T>();
  for (Index i = 0; i < lines.n; ++i) row(lines, y, i) *= scale;
}

template <class T>
void log_sum_exp(const Lines& lines, const T* x, T* best, T* log_total) {
  if (is_contiguous(lines)) {
    const In<T> input(x, lines.n);
    *best = input.maxCoeff();
    *log_total = static_cast<T>(std::log(sum_of_exp(input, *best)));
    return;
  }
  Out<T> most(best, lines.columns);
  most = largest(lines, x);
  Out<T>(log_total, lines.columns) =
      sum_columns<T>(lines, [&](Index i) { return (row(lines, x, i) - most).exp(); })
          .log()
          .template cast<T>();
}

template <class T>
void log_softmax(const Lines& lines, const T* x, T* y) {
  if (lines.n == 0) return;
  SoftmaxColumns<T> best(lines.columns);
  SoftmaxColumns<T> log_total(lines.columns);
  log_sum_exp(lines, x, best.data(), log_total.data());
  if (is_contiguous(lines)) {
    Out<T>(y, lines.n) = (In<T>(x, lines.n) - best(0)) - log_total(0);
    return;
  }
  for (Index i = 0; i < lines.n; ++i) row(lines, y, i) = (row(lines, x, i) - best) - log_total;
}

template <class T>
void softmax_adjoint(const Lines& lines, const T* dy, const T* y, T* dx) {
  if (is_contiguous(lines)) {
    const In<T> adjoint(dy, lines.n);
    const In<T> output(y, lines.n);
    double total = 0;
    for_blocks(lines.n, [&](Index first, Index length) {
      total += static_cast<double>(
          (adjoint.segment(first, length) * output.segment(first, length)).sum());
    });
    Out<T>(dx, lines.n) = output * (adjoint - static_cast<T>(total));
    return;
  }
  const SoftmaxColumns<T> total = sum_columns<T>(lines, [&](Index i) {
                                    return row(lines, dy, i) * row(lines, y, i);
                                  }).template cast<T>();
  for (Index i = 0; i < lines.n; ++i) {
    row(lines, dx, i) = row(lines, y, i) * (row(lines, dy, i) - total);
  }
}

template <class T>
void log_softmax_adjoint(const Lines& lines, const T* dy, const T* y, T* dx) {
  if (is_contiguous(lines)) {
    const In<T> adjoint(dy, lines.n);
    double total = 0;
    for_blocks(lines.n, [&](Index first, Index length) {
      total += static_cast<double>(adjoint.segment(first, length).sum());
    });
    Out<T>(dx, lines.n) = adjoint - In<T>(y, lines.n).exp() * static_cast<T>(total);
    return;
  }
  const SoftmaxColumns<T> total =
      sum_columns<T>(lines, [&](Index i) { return row(lines, dy, i); }).template cast<T>();
  for (Index i = 0; i < lines.n; ++i) {
    row(lines, dx, i) = row(lines, dy, i) - row(lines, y, i).exp() * total;
  }
}

template <class T>
constexpr SoftmaxKernels<T> softmax_kernels{softmax<T>, log_softmax<T>, softmax_adjoint<T>,
                                            log_softmax_adjoint<T>, log_sum_exp<T>};

}  // namespace

void add_softmax(Kernels& kernels) {
  kernels.softmax_f32 = softmax_kernels<float>;
  kernels.softmax_f64 = softmax_kernels<double>;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
