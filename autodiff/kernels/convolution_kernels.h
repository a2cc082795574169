#pragma once

#include <cstdint>

namespace palimpsest {

/// C = start + A·B, or C += A·B, with operands addressed by offset tables instead of strides.
/// Overlapping windows of an image can thus be the rows of B without a copy.
/// A(i, l) = a[a_row[i] + a_depth[l]] and B(l, j) = b[b_depth[l] + j]. A is m×k, B k×n, and C m×n
/// with row stride `c_row`. Rows of B must be readable up to n elements or 64 bytes, whichever is
/// more.
template <class T>
struct OffsetProduct {
  std::int64_t m, n, k;
  const T* a;
  const std::int64_t* a_row;
  const std::int64_t* a_depth;
  const T* b;
  const std::int64_t* b_depth;
  T* c;
  std::int64_t c_row;
  const T* start;  ///< initial value of each row of C; null: zero
  bool accumulate;
};

/// c[i] = Σⱼ a[a_row[i] + j]·b[j], or c[i] += …, for i in [0, m) and j in [0, n).
template <class T>
struct RowDots {
  std::int64_t m, n;
  const T* a;
  const std::int64_t* a_row;
  const T* b;
  T* c;
  bool accumulate;
};

/// How one axis of a grid reads an axis of `source` elements. Position q reads element
/// q·step + base; out of range it reads 0.
struct GridAxis {
  std::int64_t positions = 1;
  std::int64_t source = 1;
  std::int64_t step = 1;
  std::int64_t base = 0;
};

/// Arguments for reading the flat positions [first, last) of a grid with three axes. Up to 64 bytes
/// after the last position may be overwritten.
template <class T>
struct GridRead {
  GridAxis axes[3];
  std::int64_t first, last;
  const T* source;
  T* target;
};

/// The inner loops of convolution for one instruction-set level.
template <class T>
struct ConvolutionKernels {
  void (*product)(const OffsetProduct<T>&);
  void (*dots)(const RowDots<T>&);
  void (*read)(const GridRead<T>&);
  /// to[j·to_row + i] = from[i·from_row + j] for i in [0, rows), j in [0, columns).
  void (*transpose)(const T* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns,
                    T* to, std::int64_t to_row);
};

}  // namespace palimpsest
