#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "autodiff/parallel.h"
#include "autodiff/shape.h"

namespace palimpsest {

/// A run of elements along the innermost axis of a broadcast result.
template <std::size_t N>
struct Row {
  std::int64_t first;  ///< first element of the result
  std::int64_t length;
  std::array<std::int64_t, N> offset;  ///< first element of each operand
  std::array<std::int64_t, N> step;    ///< 1, or 0 if the operand is repeated
};

/// Strided access of N operands for filling a result. Axes are merged wherever all operands allow
/// it; equal shapes become a single row.
template <std::size_t N>
class Broadcast {
 public:
  Broadcast(const Shape& result, const std::array<Shape, N>& operands) {
    std::array<std::array<std::int64_t, max_rank>, N> strides{};
    for (std::size_t i = 0; i < N; ++i) {
      const auto dense = strides_of(operands[i]);
      const int extra = result.rank() - operands[i].rank();
      for (int axis = 0; axis < operands[i].rank(); ++axis) {
        if (operands[i][axis] != 1) strides[i][at(axis + extra)] = dense[at(axis)];
      }
    }
    for (int axis = 0; axis < result.rank(); ++axis) {
      if (result[axis] == 1) continue;
      bool merges = rank_ > 0;
      for (std::size_t i = 0; i < N; ++i) {
        merges = merges && strides_[i][at(rank_ - 1)] == strides[i][at(axis)] * result[axis];
      }
      if (!merges) ++rank_;
      const std::size_t last = at(rank_ - 1);
      sizes_[last] = merges ? sizes_[last] * result[axis] : result[axis];
      for (std::size_t i = 0; i < N; ++i) strides_[i][last] = strides[i][at(axis)];
    }
    if (rank_ == 0) {
      rank_ = 1;
      sizes_[0] = 1;
    }
    elements_ = result.elements();
    for (std::size_t i = 0; i < N; ++i) {
      dense_[i] = true;
      for (std::int64_t axis = rank_ - 1, stride = 1; axis >= 0; --axis) {
        dense_[i] = dense_[i] && strides_[i][static_cast<std::size_t>(axis)] == stride;
        stride *= sizes_[static_cast<std::size_t>(axis)];
      }
    }
  }

  std::int64_t row_length() const { return sizes_[at(rank_ - 1)]; }
  std::int64_t rows() const { return row_length() == 0 ? 0 : elements_ / row_length(); }

  /// Elements [begin, end) of row `index`.
  Row<N> row(std::int64_t index, std::int64_t begin, std::int64_t end) const {
    Row<N> row{index * row_length() + begin, end - begin, {}, {}};
    for (std::size_t i = 0; i < N; ++i) {
      row.step[i] = strides_[i][at(rank_ - 1)];
      row.offset[i] = begin * row.step[i];
    }
    for (int axis = rank_ - 2; axis >= 0; --axis) {
      const std::int64_t place = index % sizes_[at(axis)];
      index /= sizes_[at(axis)];
      for (std::size_t i = 0; i < N; ++i) row.offset[i] += place * strides_[i][at(axis)];
    }
    return row;
  }

  /// True if no element of operand `i` is repeated: it has the elements of the result, in order.
  bool is_dense(std::size_t i) const { return dense_[i]; }

  /// Copies the elements of operand `i` for rows [begin, end), repeated ones too.
  template <class T>
  void gather(std::size_t i, const T* operand, std::int64_t begin, std::int64_t end, T* to) const {
    const auto& strides = strides_[i];
    std::array<std::int64_t, max_rank> place{};
    const T* from = operand;
    for (std::int64_t axis = rank_ - 2, index = begin; axis >= 0; --axis) {
      const auto k = static_cast<std::size_t>(axis);
      place[k] = index % sizes_[k];
      from += place[k] * strides[k];
      index /= sizes_[k];
    }
    const std::int64_t length = row_length();
    const bool repeats = strides[at(rank_ - 1)] == 0;
    for (std::int64_t row = begin; row < end; ++row, to += length) {
      for (std::int64_t k = 0; k < length; ++k) to[k] = from[repeats ? 0 : k];
      for (int axis = rank_ - 2; axis >= 0; --axis) {
        const std::size_t k = at(axis);
        from += strides[k];
        if (++place[k] < sizes_[k]) break;
        from -= sizes_[k] * strides[k];
        place[k] = 0;
      }
    }
  }

 private:
  static constexpr std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

  std::array<std::int64_t, max_rank> sizes_{};
  std::array<std::array<std::int64_t, max_rank>, N> strides_{};
  std::array<bool, N> dense_{};
  std::int64_t elements_ = 0;
  int rank_ = 0;
};

/// Calls `f(row)` for every row in parallel. If there is only one row, it is cut at multiples of a
/// fixed length.
template <std::size_t N, class F>
void for_rows(const Broadcast<N>& broadcast, F f) {
  const std::int64_t length = broadcast.row_length();
  if (broadcast.rows() == 1) {
    parallel_chunks(length, grain_for(1),
                    [&](std::int64_t begin, std::int64_t end) { f(broadcast.row(0, begin, end)); });
    return;
  }
  const double cost = static_cast<double>(length) + 16;
  parallel_chunks(broadcast.rows(), grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) f(broadcast.row(index, 0, length));
  });
}

/// Calls `f(data, first, n)` for runs of elements [first, first + n) of the result, in parallel.
/// `data` points to as many elements of each operand, one for each element of the result. Several
/// rows are one run, with copies of operands that are repeated. Suits short rows.
template <std::size_t N, class T, class F>
void for_gathered_rows(const Broadcast<N>& broadcast, const std::array<const T*, N>& operands,
                       F f) {
  constexpr std::int64_t most = 512;
  const std::int64_t length = broadcast.row_length();
  const std::int64_t rows = std::max<std::int64_t>(1, most / length);
  parallel_chunks(divide_up(broadcast.rows(), rows), grain_for(static_cast<double>(rows * length)),
                  [&](std::int64_t begin, std::int64_t end) {
                    alignas(64) T copies[N][most];
                    for (std::int64_t run = begin; run < end; ++run) {
                      const std::int64_t first = run * rows;
                      const std::int64_t last = std::min(first + rows, broadcast.rows());
                      std::array<const T*, N> data;
                      for (std::size_t i = 0; i < N; ++i) {
                        data[i] = broadcast.is_dense(i) ? operands[i] + first * length : copies[i];
                        if (!broadcast.is_dense(i)) {
                          broadcast.gather(i, operands[i], first, last, copies[i]);
                        }
                      }
                      f(data, first * length, (last - first) * length);
                    }
                  });
}

}  // namespace palimpsest
