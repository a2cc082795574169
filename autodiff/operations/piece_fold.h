#pragma once

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>

#include "autodiff/operation.h"
#include "autodiff/operations/narrow.h"
#include "autodiff/parallel.h"

namespace palimpsest {

/// The type in which blocks of T are totalled.
template <class T>
using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;

inline constexpr std::int64_t fold_lanes = 64;  ///< elements to which short rows are combined
inline constexpr std::int64_t fold_rows = 64;   ///< rows per block

/// Folds `rows` rows of `width` elements, `stride` apart, into `sums`: four rows at a time.
template <class Rule, class T>
void combine_rows(const T* __restrict x, std::int64_t rows, std::int64_t stride, std::int64_t width,
                  T* __restrict sums) {
  for (; rows >= 4; rows -= 4, x += 4 * stride) {
    for (std::int64_t i = 0; i < width; ++i) {
      const T first = Rule::template combine<T>(x[i], x[stride + i]);
      const T second = Rule::template combine<T>(x[2 * stride + i], x[3 * stride + i]);
      sums[i] = Rule::template combine<T>(sums[i], Rule::template combine<T>(first, second));
    }
  }
  for (; rows > 0; --rows, x += stride) {
    for (std::int64_t i = 0; i < width; ++i) sums[i] = Rule::template combine<T>(sums[i], x[i]);
  }
}

/// Folds `lanes` consecutive rows of `width` elements into the first.
template <class Rule, class T>
void combine_lanes(T* rows, std::int64_t lanes, std::int64_t width) {
  while (lanes > 1) {
    const std::int64_t half = (lanes + 1) / 2;
    combine_rows<Rule>(rows + half * width, 1, 0, (lanes - half) * width, rows);
    lanes = half;
  }
}

/// Folds each of `count` adjacent rows of 2·`lanes` or 2·`lanes` + 1 elements, as `PieceFold` does.
template <class Rule, class T, std::int64_t lanes>
void fold_rows_of(const T* x, std::int64_t count, std::int64_t row, Total<T>* totals) {
  const auto combine = [](T a, T b) { return Rule::template combine<T>(a, b); };
  const bool is_odd = row % 2 != 0;
  for (std::int64_t i = 0; i < count; ++i, x += row) {
    T sums[lanes];
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      sums[lane] = combine(x[lane], x[lanes + lane]);
    if (lanes == 1 && is_odd) sums[0] = combine(sums[0], x[2]);
    for (std::int64_t left = lanes; left > 1; left = (left + 1) / 2) {
      const std::int64_t half = (left + 1) / 2;
      for (std::int64_t lane = 0; lane < left - half; ++lane) {
        sums[lane] = combine(sums[lane], sums[half + lane]);
      }
    }
    const auto add = [](Total<T> total, T more) {
      return Rule::template combine<Total<T>>(total, static_cast<Total<T>>(more));
    };
    totals[i] = add(Rule::template identity<Total<T>>(), sums[0]);
    if (lanes > 1 && is_odd) totals[i] = add(totals[i], x[2 * lanes]);
  }
}

/// Halves of the lengths of rows that have code of their own. Folding rows of other lengths side by
/// side is as fast.
template <class T>
using DirectLanes =
    std::conditional_t<sizeof(T) == 4, std::integer_sequence<std::int64_t, 1, 2, 3, 8, 16>,
                       std::integer_sequence<std::int64_t, 1, 2, 3, 4, 5, 8, 16>>;

/// True if rows of this length have code of their own.
template <class T>
bool folds_directly(std::int64_t row) {
  return [row]<std::int64_t... lanes>(std::integer_sequence<std::int64_t, lanes...>) {
    return ((row / 2 == lanes) || ...);
  }(DirectLanes<T>());
}

/// Folds each of `count` adjacent rows of `row` elements, as `PieceFold` does, if such rows have
/// code of their own. Returns whether they have.
template <class Rule, class T>
bool fold_short_rows_directly(const T* x, std::int64_t count, std::int64_t row, Total<T>* totals) {
  return [&]<std::int64_t... lanes>(std::integer_sequence<std::int64_t, lanes...>) {
    return ((row / 2 == lanes && (fold_rows_of<Rule, T, lanes>(x, count, row, totals), true)) ||
            ...);
  }(DirectLanes<T>());
}

/// Most rows of `columns` elements that are combined into one row of lanes.
constexpr std::int64_t most_lanes(std::int64_t columns) {
  return std::max<std::int64_t>(fold_lanes / columns, 1);
}

/// Folds contiguous rows of `columns` elements that are passed piece by piece (see `FoldKernel`).
/// Rows are combined as rows of lanes, and blocks of such rows into the totals of the columns.
template <class Rule, class T>
class PieceFold {
 public:
  using Element = T;

  /// `elements` is the total count. `sums` has room for `most_lanes(columns)` rows. `totals` are
  /// the results for preceding elements, to which those of these elements are added.
  PieceFold(std::int64_t columns, std::int64_t elements, T* sums, Total<T>* totals)
      : sums_(sums),
        totals_(totals),
        columns_(columns),
        lanes_(std::clamp<std::int64_t>(elements / columns / 2, 1, most_lanes(columns))) {
    clear();
  }

  void add(const T* x, std::int64_t n) {
    const std::int64_t width = lanes_ * columns_;
    while (n >= width) {
      const std::int64_t rows = std::min(n / width, fold_rows - rows_);
      combine_rows<Rule>(x, rows, width, width, sums_);
      rows_ += rows;
      if (rows_ == fold_rows) join();
      x += rows * width;
      n -= rows * width;
    }
    if (n == 0) return;
    join();
    combine_rows<Rule>(x, n / columns_, columns_, columns_, sums_);
    rows_ = 1;
    lanes_ = 1;
  }

  /// Completes the totals.
  void finish() { join(); }

  std::int64_t columns() const { return columns_; }
  /// Elements that are combined into the sums at once.
  std::int64_t width() const { return lanes_ * columns_; }
  const Total<T>* totals() const { return totals_; }

 private:
  void clear() {
    std::fill_n(sums_, lanes_ * columns_, Rule::template identity<T>());
    rows_ = 0;
  }
  /// Finishes a block.
  void join() {
    if (rows_ == 0) return;
    combine_lanes<Rule>(sums_, lanes_, columns_);
    for (std::int64_t i = 0; i < columns_; ++i) {
      totals_[i] = Rule::template combine<Total<T>>(totals_[i], static_cast<Total<T>>(sums_[i]));
    }
    clear();
  }

  T* sums_;
  Total<T>* totals_;
  std::int64_t columns_;
  std::int64_t lanes_;
  std::int64_t rows_ = 0;  // of lanes, in the current block
};

/// `FoldKernel::rows` of a reduction by `Rule`.
template <class Rule, class T>
void fold_many_rows(const Attributes& attributes, const std::byte* x, std::int64_t count,
                    std::int64_t row, std::byte* to) {
  constexpr std::int64_t together = 128;
  const Rule rule = Rule::of(attributes);
  const T* from = reinterpret_cast<const T*>(x);
  T* results = reinterpret_cast<T*>(to);
  Total<T> totals[together];
  while (count > 0) {
    const std::int64_t n = std::min(count, together);
    fold_short_rows_directly<Rule, T>(from, n, row, totals);
    for (std::int64_t i = 0; i < n; ++i) results[i] = rule.finish(totals[i], T{});
    from += n * row;
    results += n;
    count -= n;
  }
}

/// Passes n elements of a narrow type to `fold`.
template <class From, class Fold, class T = Fold::Element>
void add_widened(Fold& fold, const From* x, std::int64_t n) {
  alignas(64) T tile[narrow_piece];
  const std::int64_t step = narrow_piece / fold.width() * fold.width();
  for (std::int64_t first = 0; first < n; first += step) {
    const std::int64_t count = std::min(step, n - first);
    widen(x + first, count, tile);
    fold.add(tile, count);
  }
}

/// The streaming kernel of a reduction by `Rule`, which `Rule::of` constructs from the attributes.
/// The elements are of type T, or of a narrow type `From`.
template <class Rule, class T, class From = T>
FoldKernel piece_fold_kernel(std::int64_t rows, std::int64_t columns, std::int64_t segment_rows) {
  using Fold = PieceFold<Rule, T>;
  // The sums and the totals lie behind the object.
  constexpr std::int64_t head = 64;
  static_assert(sizeof(Fold) <= head && sizeof(Total<T>) <= 8);
  const std::int64_t width = most_lanes(columns) * columns;
  return {.elements = rows * columns,
          .columns = columns,
          .segment = segment_rows * columns,
          .piece = 4 * width,
          .state_bytes = head + round_up(8 * width, 64) + round_up(8 * columns, 64),
          .begin =
              [](std::byte* state, std::int64_t elements, std::int64_t columns) {
                const std::int64_t sums = most_lanes(columns) * columns;
                std::byte* const totals = state + head + round_up(8 * sums, 64);
                auto* const first = reinterpret_cast<Total<T>*>(totals);
                std::fill_n(first, columns, Rule::template identity<Total<T>>());
                new (state) Fold(columns, elements, reinterpret_cast<T*>(state + head), first);
              },
          .add =
              [](std::byte* state, const std::byte* x, std::int64_t n) {
                auto& fold = *reinterpret_cast<Fold*>(state);
                if constexpr (std::is_same_v<T, From>) {
                  fold.add(reinterpret_cast<const T*>(x), n);
                } else {
                  add_widened(fold, reinterpret_cast<const From*>(x), n);
                }
              },
          .end =
              [](std::byte* state, std::byte* totals) {
                auto& fold = *reinterpret_cast<Fold*>(state);
                fold.finish();
                std::copy_n(fold.totals(), fold.columns(), reinterpret_cast<Total<T>*>(totals));
              },
          .finish =
              [](const Attributes& attributes, std::byte* totals, std::int64_t segments,
                 std::int64_t columns, std::byte* to) {
                const std::int64_t step = columns * 8 / std::int64_t{sizeof(Total<T>)};
                auto* const parts = reinterpret_cast<Total<T>*>(totals);
                combine_rows<Rule>(parts + step, segments - 1, step, columns, parts);
                const Rule rule = Rule::of(attributes);
                auto* const results = reinterpret_cast<T*>(to);
                for (std::int64_t i = 0; i < columns; ++i) results[i] = rule.finish(parts[i], T{});
              },
          .rows = std::is_same_v<T, From> && columns == 1 && folds_directly<T>(rows)
                      ? fold_many_rows<Rule, T>
                      : nullptr};
}

}  // namespace palimpsest
