#pragma once

#include <cstddef>

namespace palimpsest::benchmarks::by_hand {

/// A cell of a periodic grid. Members are indices of this cell and of those around it.
struct Cell {
  std::size_t row, row_north, row_south;
  std::size_t column, column_east, column_west;

  std::size_t here() const { return row + column; }
  std::size_t east() const { return row + column_east; }
  std::size_t west() const { return row + column_west; }
  std::size_t north() const { return row_north + column; }
  std::size_t south() const { return row_south + column; }
  std::size_t north_west() const { return row_north + column_west; }
  std::size_t south_east() const { return row_south + column_east; }
};

/// Calls f(cell) for all cells of an n × n grid. The cells inside a row make one loop without
/// dependencies, so that it is vectorised.
template <std::size_t n, class F>
inline void for_cells(F f) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t row = i * n;
    const std::size_t north = (i + 1 == n ? 0 : i + 1) * n;
    const std::size_t south = (i == 0 ? n - 1 : i - 1) * n;
    f(Cell{row, north, south, 0, 1, n - 1});
#pragma GCC ivdep
    for (std::size_t j = 1; j + 1 < n; ++j) f(Cell{row, north, south, j, j + 1, j - 1});
    f(Cell{row, north, south, n - 1, 0, n - 2});
  }
}

}  // namespace palimpsest::benchmarks::by_hand
