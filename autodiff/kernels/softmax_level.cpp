#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/kernels/level.h"
#include "autodiff/kernels/pack_functions.h"
#include "autodiff/kernels/runs.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

using Index = std::int64_t;

// Elements summed in their own precision before the partial sum is added in f64.
constexpr Index softmax_block = 512;
constexpr Index block_rows = 16;

/// A part of a contiguous line, padded to whole packs.
template <class T>
struct alignas(64) SoftmaxBlock {
  T numbers[softmax_block];
};

/// One number per column, padded to whole packs.
template <class T>
struct alignas(64) SoftmaxColumns {
  T numbers[Lines::most_columns];
};

bool is_contiguous(const Lines& lines) { return lines.columns == 1 && lines.stride == 1; }

/// Calls `f(first, length)` for the blocks of [0, n).
template <class F>
void for_blocks(Index n, F f) {
  for (Index first = 0; first < n; first += softmax_block) {
    f(first, n - first < softmax_block ? n - first : softmax_block);
  }
}

/// Replaces n numbers ≤ 0 by their exponentials. The last pack is computed whole, within the array.
template <class T>
[[gnu::noinline]] void exponentiate(Index n, T* numbers) {
  constexpr Index size = Pack<T>::size;
  for (Index i = n; i % size != 0; ++i) numbers[i] = 0;
  for (Index i = 0; i < n; i += size) decay(Pack<T>::load(numbers + i)).store(numbers + i);
}

constexpr auto itself = [](const auto& x) { return x; };
constexpr auto difference = [](const auto& a, const auto& b) { return a - b; };

template <class T>
T largest(const T* x, Index n) {
  constexpr Index size = Pack<T>::size;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  Pack<T> most = lowest;
  Index i = 0;
  for (; i + size <= n; i += size) {
    const Pack<T> pack = Pack<T>::load(x + i);
    most = Pack<T>(pack.lanes() > most.lanes() ? pack.lanes() : most.lanes());
  }
  alignas(64) T lanes[size];
  most.store(lanes);
  T best = lanes[0];
  for (const T lane : lanes) best = best < lane ? lane : best;
  for (; i < n; ++i) best = best < x[i] ? x[i] : best;
  return best;
}

template <class T>
SoftmaxColumns<T> largest_by_column(const Lines& lines, const T* x) {
  SoftmaxColumns<T> best;
  for (Index c = 0; c < lines.columns; ++c) best.numbers[c] = x[c];
  for (Index i = 1; i < lines.n; ++i) {
    const T* row = x + i * lines.stride;
    for (Index c = 0; c < lines.columns; ++c) {
      best.numbers[c] = best.numbers[c] < row[c] ? row[c] : best.numbers[c];
    }
  }
  return best;
}

/// Adjacent rows of terms, padded to whole packs.
template <class T>
struct alignas(64) SoftmaxRows {
  T numbers[block_rows * Lines::most_columns];
};

/// Calls `f(first, last)` for groups of rows.
template <class F>
void for_rows(const Lines& lines, F f) {
  for (Index first = 0; first < lines.n; first += block_rows) {
    f(first, lines.n - first < block_rows ? lines.n : first + block_rows);
  }
}

/// The sum of f(from...) over each column.
template <class T, class F, class... From>
SoftmaxColumns<T> sum_columns(const Lines& lines, F f, const From*... from) {
  double total[Lines::most_columns] = {};
  for_rows(lines, [&](Index first, Index last) {
    SoftmaxColumns<T> partial{};
    for (Index i = first; i < last; ++i) {
      compute_run(
          lines.columns, [=](const auto& sum, const auto&... x) { return sum + f(x...); },
          partial.numbers, partial.numbers, from + i * lines.stride...);
    }
    for (Index c = 0; c < lines.columns; ++c) total[c] += double{partial.numbers[c]};
  });
  SoftmaxColumns<T> sums;
  for (Index c = 0; c < lines.columns; ++c) sums.numbers[c] = static_cast<T>(total[c]);
  return sums;
}

/// Σ exp(x − best) of each column. Calls `use(first, last, rows)` with the exponentials of these
/// rows.
template <class T, class Use>
void sum_of_exp(const Lines& lines, const T* x, const SoftmaxColumns<T>& best, double* total,
                Use use) {
  std::fill_n(total, lines.columns, 0.0);
  SoftmaxRows<T> rows;
  for_rows(lines, [&](Index first, Index last) {
    T* next = rows.numbers;
    for (Index i = first; i < last; ++i, next += lines.columns) {
      compute_run(lines.columns, difference, next, x + i * lines.stride, best.numbers);
    }
    exponentiate(next - rows.numbers, rows.numbers);
    SoftmaxColumns<T> partial{};
    for (const T* row = rows.numbers; row < next; row += lines.columns) {
      for (Index c = 0; c < lines.columns; ++c) partial.numbers[c] += row[c];
    }
    for (Index c = 0; c < lines.columns; ++c) total[c] += double{partial.numbers[c]};
    use(first, last, rows.numbers);
  });
}

/// Σ exp(x − best) of a contiguous line. Calls `use(first, length, block)` with the exponentials.
template <class T, class Use>
double sum_of_exp(const T* x, Index n, T best, Use use) {
  SoftmaxBlock<T> block;
  double total = 0;
  for_blocks(n, [&](Index first, Index length) {
    compute_run(
        length, [=](const auto& number) { return number - best; }, block.numbers, x + first);
    exponentiate(length, block.numbers);
    total += double{sum_run(length, itself, block.numbers)};
    use(first, length, block.numbers);
  });
  return total;
}

template <class T>
void softmax(const Lines& lines, const T* x, T* y) {
  if (lines.n == 0) return;
  if (is_contiguous(lines)) {
    const double total =
        sum_of_exp(x, lines.n, largest(x, lines.n), [&](Index first, Index length, const T* block) {
          compute_run(length, itself, y + first, block);
        });
    const T scale = static_cast<T>(1 / total);
    compute_run(lines.n, [=](const auto& number) { return number * scale; }, y, y);
    return;
  }
  double total[Lines::most_columns];
  sum_of_exp(lines, x, largest_by_column(lines, x), total,
             [&](Index first, Index last, const T* rows) {
               for (Index i = first; i < last; ++i, rows += lines.columns) {
                 compute_run(lines.columns, itself, y + i * lines.stride, rows);
               }
             });
  SoftmaxColumns<T> scale;
  for (Index c = 0; c < lines.columns; ++c) scale.numbers[c] = static_cast<T>(1 / total[c]);
  for (Index i = 0; i < lines.n; ++i) {
    T* row = y + i * lines.stride;
    compute_run(
        lines.columns, [](const auto& a, const auto& b) { return a * b; }, row, row, scale.numbers);
  }
}

template <class T>
void log_sum_exp(const Lines& lines, const T* x, T* best, T* log_total) {
  if (is_contiguous(lines)) {
    *best = largest(x, lines.n);
    *log_total =
        static_cast<T>(std::log(sum_of_exp(x, lines.n, *best, [](Index, Index, const T*) {})));
    return;
  }
  const SoftmaxColumns<T> most = largest_by_column(lines, x);
  double total[Lines::most_columns];
  sum_of_exp(lines, x, most, total, [](Index, Index, const T*) {});
  for (Index c = 0; c < lines.columns; ++c) {
    best[c] = most.numbers[c];
    log_total[c] = static_cast<T>(std::log(total[c]));
  }
}

template <class T>
void log_softmax(const Lines& lines, const T* x, T* y) {
  if (lines.n == 0) return;
  SoftmaxColumns<T> best;
  SoftmaxColumns<T> log_total;
  log_sum_exp(lines, x, best.numbers, log_total.numbers);
  if (is_contiguous(lines)) {
    compute_run(
        lines.n,
        [most = best.numbers[0], total = log_total.numbers[0]](const auto& number) {
          return (number - most) - total;
        },
        y, x);
    return;
  }
  for (Index i = 0; i < lines.n; ++i) {
    compute_run(
        lines.columns,
        [](const auto& number, const auto& most, const auto& total) {
          return (number - most) - total;
        },
        y + i * lines.stride, x + i * lines.stride, best.numbers, log_total.numbers);
  }
}

template <class T>
void softmax_adjoint(const Lines& lines, const T* dy, const T* y, T* dx) {
  constexpr auto product = [](const auto& a, const auto& b) { return a * b; };
  if (is_contiguous(lines)) {
    const T total = static_cast<T>(sum_blocks(lines.n, product, dy, y));
    compute_run(
        lines.n, [=](const auto& from, const auto& out) { return out * (from - total); }, dx, dy,
        y);
    return;
  }
  const SoftmaxColumns<T> total = sum_columns<T>(lines, product, dy, y);
  for (Index i = 0; i < lines.n; ++i) {
    const Index at = i * lines.stride;
    compute_run(
        lines.columns,
        [](const auto& from, const auto& out, const auto& sum) { return out * (from - sum); },
        dx + at, dy + at, y + at, total.numbers);
  }
}

template <class T>
void log_softmax_adjoint(const Lines& lines, const T* dy, const T* y, T* dx) {
  if (is_contiguous(lines)) {
    const T total = static_cast<T>(sum_blocks(lines.n, itself, dy));
    SoftmaxBlock<T> block;
    for_blocks(lines.n, [&](Index first, Index length) {
      compute_run(length, itself, block.numbers, y + first);
      exponentiate(length, block.numbers);
      compute_run(
          length, [=](const auto& from, const auto& weight) { return from - weight * total; },
          dx + first, dy + first, block.numbers);
    });
    return;
  }
  const SoftmaxColumns<T> total = sum_columns<T>(lines, itself, dy);
  SoftmaxRows<T> rows;
  for_rows(lines, [&](Index first, Index last) {
    T* next = rows.numbers;
    for (Index i = first; i < last; ++i, next += lines.columns) {
      compute_run(lines.columns, itself, next, y + i * lines.stride);
    }
    exponentiate(next - rows.numbers, rows.numbers);
    next = rows.numbers;
    for (Index i = first; i < last; ++i, next += lines.columns) {
      compute_run(
          lines.columns,
          [](const auto& from, const auto& weight, const auto& sum) { return from - weight * sum; },
          dx + i * lines.stride, dy + i * lines.stride, next, total.numbers);
    }
  });
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
