#pragma once

#include <cstdint>
#include <cstring>

namespace palimpsest {

/// Copies the rows of adjacent groups next to each other: row after row, and in each row group
/// after group. Group g has its rows of `columns` elements from `x + g * rows * columns` on.
template <class T>
void gather_rows(const T* x, std::int64_t groups, std::int64_t rows, std::int64_t columns, T* to) {
  const std::int64_t width = groups * columns;
  std::int64_t row = 0;
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    // Transposes squares in registers: strided access takes longer than the reduction itself.
    constexpr std::int64_t side = 16 / sizeof(T);
    using Vector [[gnu::vector_size(16)]] = T;
    const bool are_squares = columns == 1 && groups % side == 0;
    for (; are_squares && row + side <= rows; row += side) {
      for (std::int64_t group = 0; group < groups; group += side) {
        Vector v[side];
        for (std::int64_t k = 0; k < side; ++k) {
          std::memcpy(&v[k], x + (group + k) * rows + row, sizeof(Vector));
        }
        Vector lines[side];
        if constexpr (side == 2) {
          lines[0] = __builtin_shufflevector(v[0], v[1], 0, 2);
          lines[1] = __builtin_shufflevector(v[0], v[1], 1, 3);
        } else {
          const Vector low = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
          const Vector high = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
          const Vector low2 = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
          const Vector high2 = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
          lines[0] = __builtin_shufflevector(low, low2, 0, 1, 4, 5);
          lines[1] = __builtin_shufflevector(low, low2, 2, 3, 6, 7);
          lines[2] = __builtin_shufflevector(high, high2, 0, 1, 4, 5);
          lines[3] = __builtin_shufflevector(high, high2, 2, 3, 6, 7);
        }
        for (std::int64_t k = 0; k < side; ++k) {
          std::memcpy(to + (row + k) * width + group, &lines[k], sizeof(Vector));
        }
      }
    }
  }
  for (; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; ++i) {
      for (std::int64_t group = 0; group < groups; ++group) {
        to[row * width + group * columns + i] = x[(group * rows + row) * columns + i];
      }
    }
  }
}

}  // namespace palimpsest
