#pragma once

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>

#include "autodiff/operation.h"

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

/// Folds each of `count` adjacent rows of 2·`lanes` or 2·`lanes` + 1 elements, as `RowFold` does.
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

/// Folds each of `count` adjacent rows of `row` elements, as `RowFold` does, if such rows have code
/// of their own. Returns whether they have.
template <class Rule, class T>
bool fold_short_rows_directly(const T* x, std::int64_t count, std::int64_t row, Total<T>* totals) {
  return [&]<std::int64_t... lanes>(std::integer_sequence<std::int64_t, lanes...>) {
    return ((row / 2 == lanes && (fold_rows_of<Rule, T, lanes>(x, count, row, totals), true)) ||
            ...);
  }(DirectLanes<T>());
}

/// Folds contiguous elements that are passed piece by piece (see `FoldKernel`). Elements are
/// combined as rows of lanes, and blocks of such rows into a total.
template <class Rule, class T>
class RowFold {
 public:
  /// `elements` is the total count; `total` is the result for preceding elements.
  explicit RowFold(std::int64_t elements, Total<T> total = Rule::template identity<Total<T>>())
      : total_(total), lanes_(std::clamp<std::int64_t>(elements / 2, 1, fold_lanes)) {
    clear();
  }

  void add(const T* x, std::int64_t n) {
    while (n >= lanes_ && lanes_ > 1) {
      const std::int64_t rows = std::min(n / lanes_, fold_rows - rows_);
      combine_rows<Rule>(x, rows, lanes_, lanes_, sums_);
      rows_ += rows;
      if (rows_ == fold_rows) join();
      x += rows * lanes_;
      n -= rows * lanes_;
    }
    if (n == 0) return;
    join();
    combine_rows<Rule>(x, n, 1, 1, sums_);
    rows_ = 1;
    lanes_ = 1;
  }

  Total<T> total() {
    join();
    return total_;
  }

 private:
  void clear() {
    std::fill_n(sums_, lanes_, Rule::template identity<T>());
    rows_ = 0;
  }
  /// Finishes a block.
  void join() {
    if (rows_ == 0) return;
    combine_lanes<Rule>(sums_, lanes_, 1);
    total_ = Rule::template combine<Total<T>>(total_, static_cast<Total<T>>(sums_[0]));
    clear();
  }

  alignas(64) T sums_[fold_lanes];  // one per lane
  Total<T> total_;
  std::int64_t lanes_;
  std::int64_t rows_ = 0;  // in the current block
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

/// The streaming kernel of a reduction by `Rule`, which `Rule::of` constructs from the attributes.
template <class Rule, class T>
FoldKernel row_fold_kernel(std::int64_t elements, std::int64_t segment) {
  using Fold = RowFold<Rule, T>;
  static_assert(sizeof(Fold) <= FoldKernel::state_bytes && alignof(Fold) <= buffer_alignment);
  static_assert(sizeof(Total<T>) <= FoldKernel::total_bytes);
  static_assert(FoldKernel::piece == 4 * fold_lanes);
  return {.elements = elements,
          .segment = segment,
          .begin = [](std::byte* state, std::int64_t count) { new (state) Fold(count); },
          .add =
              [](std::byte* state, const std::byte* x, std::int64_t n) {
                reinterpret_cast<Fold*>(state)->add(reinterpret_cast<const T*>(x), n);
              },
          .end =
              [](std::byte* state, std::byte* total) {
                *reinterpret_cast<Total<T>*>(total) = reinterpret_cast<Fold*>(state)->total();
              },
          .finish =
              [](const Attributes& attributes, std::byte* totals, std::int64_t segments,
                 std::byte* to) {
                constexpr std::int64_t step = FoldKernel::total_bytes / sizeof(Total<T>);
                auto* parts = reinterpret_cast<Total<T>*>(totals);
                combine_rows<Rule>(parts + step, segments - 1, step, 1, parts);
                *reinterpret_cast<T*>(to) = Rule::of(attributes).finish(parts[0], T{});
              },
          .rows = folds_directly<T>(elements) ? fold_many_rows<Rule, T> : nullptr};
}

}  // namespace palimpsest
