#pragma once

#include <algorithm>

#include "autodiff/operations/fold.h"
#include "autodiff/parallel.h"

/// The loop of all cumulative operations.
namespace palimpsest {

struct CumulativeAttributes {
  int axis;
  bool reverse;

  bool operator==(const CumulativeAttributes&) const = default;
};

/// Walks along an axis of `shape`, from its first element or from its last. Calls
/// `step(state, at, row)` for every element: `at` is its offset, and `row` its position along the
/// axis. Each line begins with the state `initial`. `cost` is that of one element.
template <class State, class Step>
void for_cumulative(const Shape& shape, const CumulativeAttributes& attributes, State initial,
                    double cost, Step step) {
  const auto [axis, reverse] = attributes;
  const std::int64_t n = shape[axis];
  const std::int64_t columns = strides_of(shape)[static_cast<std::size_t>(axis)];
  const std::int64_t tiles = divide_up(columns, fold_columns);
  const std::int64_t items = n == 0 || columns == 0 ? 0 : shape.elements() / (n * columns) * tiles;
  const std::int64_t begin_row = reverse ? n - 1 : 0;
  const std::int64_t row_step = reverse ? -1 : 1;
  const double item_cost = cost * static_cast<double>(n * std::min(columns, fold_columns));
  parallel_chunks(items, grain_for(item_cost), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t item = begin;
    // Steps of several lines do not wait for each other.
    constexpr std::int64_t at_once = 2;
    for (; columns == 1 && item + at_once <= end; item += at_once) {
      State states[at_once];
      std::fill_n(states, at_once, initial);
      const std::int64_t from = item * n;
      std::int64_t row = begin_row;
      for (std::int64_t i = 0; i < n; ++i, row += row_step) {
#pragma GCC unroll 2
        for (std::int64_t line = 0; line < at_once; ++line) {
          step(states[line], from + line * n + row, row);
        }
      }
    }
    for (; item < end; ++item) {
      const std::int64_t first = item % tiles * fold_columns;
      const std::int64_t width = std::min(fold_columns, columns - first);
      const std::int64_t from = item / tiles * n * columns + first;
      std::int64_t row = begin_row;
      if (columns == 1) {
        State state = initial;
        for (std::int64_t i = 0; i < n; ++i, row += row_step) step(state, from + row, row);
        continue;
      }
      State states[fold_columns];
      std::fill_n(states, width, initial);
      for (std::int64_t i = 0; i < n; ++i, row += row_step) {
        const std::int64_t at = from + row * columns;
        for (std::int64_t column = 0; column < width; ++column) {
          step(states[column], at + column, row);
        }
      }
    }
  });
}

}  // namespace palimpsest
