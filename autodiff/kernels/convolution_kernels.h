#pragma once

#include <cstdint>

namespace palimpsest {

/// C = start + A·B, or C += A·B, for operands that are found by tables instead of strides, so that
/// overlapping windows of an image are the rows of B without being copied out:
/// A(i, l) = a[a_row[i] + a_depth[l]] and B(l, j) = b[b_depth[l] + j]. A is m×k, B k×n, C m×n with
/// `c_row` elements from row to row. Rows of B are readable up to the larger of n elements and 64
/// bytes.
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
  const T* start;  ///< what each row of C starts from; null: zero
  bool accumulate;
};

/// c[i] = Σⱼ a[a_row[i] + j]·b[j], or c[i] += it, for i in [0, m) and j in [0, n).
template <class T>
struct RowDots {
  std::int64_t m, n;
  const T* a;
  const std::int64_t* a_row;
  const T* b;
  T* c;
  bool accumulate;
};

/// How one axis of a grid reads an axis of `source` elements: position q reads element
/// q·step + base, which counts as 0 where there is none.
struct GridAxis {
  std::int64_t positions = 1;
  std::int64_t source = 1;
  std::int64_t step = 1;
  std::int64_t base = 0;
};

/// What reading flat positions [first, last) of a grid of three axes takes. Up to 64 bytes behind
/// the last position are overwritten.
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
