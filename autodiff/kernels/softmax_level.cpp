#include <cmath>
#include <limits>

#include "autodiff/kernels/level.h"
#include "autodiff/kernels/pack_functions.h"
#include "autodiff/kernels/runs.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

using Index = std::int64_t;

// Elements summed in their own precision before the sum goes on in f64.
constexpr Index softmax_block = 512;
constexpr Index block_rows = 16;

/// A part of a contiguous line, whole packs.
template <class T>
struct alignas(64) SoftmaxBlock {
  T numbers[softmax_block];
};

/// One number a column, whole packs.
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

/// Replaces n numbers by their exponentials. The last pack is computed whole, within the array.
template <class T>
[[gnu::noinline]] void exponentiate(Index n, T* numbers) {
  constexpr Index size = Pack<T>::size;
  for (Index i = n; i % size != 0; ++i) numbers[i] = 0;
  for (Index i = 0; i < n; i += size) exponential(Pack<T>::load(numbers + i)).store(numbers + i);
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
  T best = lowest;
  for (int lane = 0; lane < size; ++lane)
    best = best < most.lanes()[lane] ? most.lanes()[lane] : best;
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

/// The sum over each column of the terms that `set(i, terms)` gives for row i.
template <class T, class Set>
SoftmaxColumns<double> sum_columns(const Lines& lines, Set set) {
  SoftmaxColumns<double> total{};
  SoftmaxColumns<T> terms;
  for (Index first = 0; first < lines.n; first += block_rows) {
    SoftmaxColumns<T> partial{};
    const Index last = lines.n - first < block_rows ? lines.n : first + block_rows;
    for (Index i = first; i < last; ++i) {
      set(i * lines.stride, terms.numbers);
      for (Index c = 0; c < lines.columns; ++c) partial.numbers[c] += terms.numbers[c];
    }
    for (Index c = 0; c < lines.columns; ++c) total.numbers[c] += double{partial.numbers[c]};
  }
  return total;
}

/// Σ exp(x − best) of a contiguous line; `use(first, length, block)` sees the exponentials.
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
  const SoftmaxColumns<T> best = largest_by_column(lines, x);
  const SoftmaxColumns<double> total = sum_columns<T>(lines, [&](Index at, T* terms) {
    compute_run(lines.columns, difference, terms, x + at, best.numbers);
    exponentiate(lines.columns, terms);
    compute_run(lines.columns, itself, y + at, terms);
  });
  SoftmaxColumns<T> scale;
  for (Index c = 0; c < lines.columns; ++c) scale.numbers[c] = static_cast<T>(1 / total.numbers[c]);
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
  const SoftmaxColumns<double> total = sum_columns<T>(lines, [&](Index at, T* terms) {
    compute_run(lines.columns, difference, terms, x + at, most.numbers);
    exponentiate(lines.columns, terms);
  });
  for (Index c = 0; c < lines.columns; ++c) {
    best[c] = most.numbers[c];
    log_total[c] = static_cast<T>(std::log(total.numbers[c]));
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
  const SoftmaxColumns<double> sums = sum_columns<T>(lines, [&](Index at, T* terms) {
    compute_run(lines.columns, product, terms, dy + at, y + at);
  });
  SoftmaxColumns<T> total;
  for (Index c = 0; c < lines.columns; ++c) total.numbers[c] = static_cast<T>(sums.numbers[c]);
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
  const SoftmaxColumns<double> sums = sum_columns<T>(
      lines, [&](Index at, T* terms) { compute_run(lines.columns, itself, terms, dy + at); });
  SoftmaxColumns<T> total;
  for (Index c = 0; c < lines.columns; ++c) total.numbers[c] = static_cast<T>(sums.numbers[c]);
  SoftmaxColumns<T> weights;
  for (Index i = 0; i < lines.n; ++i) {
    const Index at = i * lines.stride;
    compute_run(lines.columns, itself, weights.numbers, y + at);
    exponentiate(lines.columns, weights.numbers);
    compute_run(
        lines.columns,
        [](const auto& from, const auto& weight, const auto& sum) { return from - weight * sum; },
        dx + at, dy + at, weights.numbers, total.numbers);
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
