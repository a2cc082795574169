#pragma once

#include <algorithm>
#include <array>

#include "autodiff/kernels/gemm_tile.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/parallel.h"

namespace palimpsest::PALIMPSEST_LEVEL {

/// One product, computed tile by tile. Blocks of B are packed while the first rows are computed,
/// and stay in L2. A is read in place. It is packed tile by tile if it is transposed or its depth
/// is not a multiple of the multiplier's step.
template <class T>
class TiledGemm {
 public:
  using Sum = SumOf<T>;
  explicit TiledGemm(const BlockedGemm<T>& call) : call_(call), p_(call.product) {
    // If B is packed for the whole depth, each row of A can be read to its end.
    const bool whole = !p_.transpose_a && call.columns_block >= p_.n &&
                       round_up(p_.k, step) * round_up(p_.n, lanes<T>) <= call.packed_size;
    group_ = whole ? p_.k : call.depth_block;
  }

  void run() {
    for (first_depth_ = 0; first_depth_ < p_.k; first_depth_ += group_) {
      for (first_column_ = 0; first_column_ < p_.n; first_column_ += call_.columns_block) {
        columns_ = std::min(call_.columns_block, p_.n - first_column_);
        for (row_ = 0; row_ < p_.m; row_ += tile_rows) {
          rows_ = std::min<std::int64_t>(tile_rows, p_.m - row_);
          const std::int64_t end = std::min(p_.k, first_depth_ + group_);
          for (depth_at_ = first_depth_; depth_at_ < end; depth_at_ += call_.depth_block) {
            run_rows();
          }
        }
      }
    }
  }

 private:
  static constexpr std::int64_t step = Multiplier<T>::step;

  /// All tiles of the current rows and columns, for one block of the depth.
  void run_rows() {
    depth_ = std::min(call_.depth_block, p_.k - depth_at_);
    steps_ = divide_up(depth_, step);
    packs_rows_ = p_.transpose_a || depth_ % step != 0;
    if (packs_rows_) pack_rows();
    for (std::int64_t j = 0, vectors; j < columns_; j += vectors * lanes<T>) {
      const std::int64_t left = divide_up(columns_ - j, lanes<T>);
      vectors = left == 4 ? 2 : std::min<std::int64_t>(left, tile_vectors);
      run_tile(j, vectors);
    }
  }

  void run_tile(std::int64_t j, std::int64_t vectors) {
    const std::int64_t width = vectors * lanes<T>;
    const std::int64_t columns = std::min(width, columns_ - j);
    T* panel = call_.packed_b + (depth_at_ - first_depth_) * round_up(columns_, lanes<T>) +
               j * steps_ * step;
    const bool is_last = j + columns == columns_;
    const bool has_more = p_.m - row_ >= 2 * tile_rows;
    Tile<T> tile{.depth = steps_,
                 .alpha = p_.alpha,
                 .accumulate = p_.accumulate || depth_at_ > 0,
                 .a = p_.a + row_ * p_.lda + depth_at_,
                 .a_row = p_.lda,
                 .a_step = step,
                 .b = panel,
                 .b_step = width * step,
                 .kept = panel};
    tile.next = tile.a + (is_last && has_more ? tile_rows * p_.lda : 0);
    if (packs_rows_) {
      tile.next = tile.a = call_.packed_a;
      tile.a_row = step;
      tile.a_step = rows_ * step;
    }
    bool first = false;
    if (row_ == 0) {
      const T* from = p_.b + depth_at_ * (p_.transpose_b ? 1 : p_.ldb) +
                      (first_column_ + j) * (p_.transpose_b ? p_.ldb : 1);
      if (step > 1 || p_.transpose_b || columns < width) {
        pack_columns(from, columns, width, panel);
      } else {
        tile.b = from;
        tile.b_step = p_.ldb;
        first = p_.m > tile_rows;
        if (first) tile.next = from + (is_last ? 0 : width);
      }
    }
    tile.c_row = width;
    if (depth_at_ + depth_ == p_.k) tile.addend = p_.addend;
    finish_tile(tile, tile_kernel<T>(rows_, vectors, first), j, columns);
  }

  /// Runs the kernel on C in place if C holds the whole tile, else on a copy of the tile. If the
  /// copy covers all columns, it is kept until the rows' depth is complete.
  void finish_tile(Tile<T>& tile, TileKernel<T> kernel, std::int64_t j, std::int64_t columns) {
    const std::int64_t row_step = call_.transpose_c ? 1 : p_.ldc;
    const std::int64_t column_step = call_.transpose_c ? p_.ldc : 1;
    const std::int64_t width = tile.c_row;
    const std::int64_t at = row_ * row_step + (first_column_ + j) * column_step;
    Sum* c = p_.c + at;
    const Sum* addend = tile.addend == nullptr ? nullptr : tile.addend + at;
    if (columns == width && !call_.transpose_c) {
      tile.c = c;
      tile.addend = addend;
      tile.c_row = p_.ldc;
      kernel(tile);
      return;
    }
    Sum* const copy = copy_.data();
    Sum addend_copy[tile_rows * tile_vectors * lanes<T>];
    const auto for_elements = [&](auto f) {
      for (std::int64_t s = 0; s < columns; ++s) {
        for (std::int64_t r = 0; r < rows_; ++r) f(r * width + s, r * row_step + s * column_step);
      }
    };
    const auto take = [&](const Sum* from, Sum* to) {
      std::fill_n(to, rows_ * width, Sum(0));
      for_elements([&](std::int64_t mine, std::int64_t theirs) { to[mine] = from[theirs]; });
    };
    const bool stays = group_ == p_.k && columns == columns_;
    if (tile.accumulate && !(stays && depth_at_ > 0)) take(c, copy);
    if (addend != nullptr) take(addend, addend_copy);
    tile.c = copy;
    tile.addend = addend == nullptr ? nullptr : addend_copy;
    kernel(tile);
    if (stays && depth_at_ + depth_ < p_.k) return;
    for_elements([&](std::int64_t mine, std::int64_t theirs) { c[theirs] = copy[mine]; });
  }

  /// Packs the current rows by depth, padded with zeros to whole steps.
  void pack_rows() const {
    const std::int64_t a_row = p_.transpose_a ? 1 : p_.lda;
    const std::int64_t a_step = p_.transpose_a ? p_.lda : 1;
    const T* from = p_.a + depth_at_ * a_step + row_ * a_row;
    // Constants that most calls use, for the optimizer.
    if (rows_ == tile_rows && p_.transpose_a)
      pack_side_by_side(from, tile_rows, 1, a_step, tile_rows, call_.packed_a);
    else
      pack_side_by_side(from, rows_, a_row, a_step, rows_, call_.packed_a);
  }

  /// Packs `count` numbers per depth, padded with zeros to `width` and to whole steps.
  [[gnu::always_inline]] void pack_side_by_side(const T* from, std::int64_t count,
                                                std::int64_t number_step, std::int64_t depth_step,
                                                std::int64_t width, T* to) const {
    std::int64_t l = 0;
    for (; l + step <= depth_; l += step, from += step * depth_step, to += width * step) {
      if (number_step == 1) {
        Multiplier<T>::pack(from, depth_step, count, to);
      } else {
        for (std::int64_t s = 0; s < count; ++s) {
          for (std::int64_t i = 0; i < step; ++i) {
            to[s * step + i] = from[i * depth_step + s * number_step];
          }
        }
      }
      std::fill(to + count * step, to + width * step, T());
    }
    if (l == depth_) return;  // a step has at most two depths
    std::fill_n(to, width * step, T());
    for (std::int64_t s = 0; s < count; ++s) to[s * step] = from[s * number_step];
  }

  /// Packs columns of op(B) by depth, padded with zeros to whole vectors and steps.
  void pack_columns(const T* from, std::int64_t columns, std::int64_t width, T* to) const {
    if (!p_.transpose_b) {
      pack_side_by_side(from, columns, 1, p_.ldb, width, to);
      return;
    }
    for (std::int64_t j = 0; j < width; j += lanes<T>) {
      std::int64_t l = 0;
      for (; j + lanes<T> <= columns && l + lanes<T> * step <= depth_; l += lanes<T> * step) {
        Eigen::internal::PacketBlock<Packet<T>, lanes<T>> block;
        for (int i = 0; i < lanes<T>; ++i) {
          block.packet[i] = Multiplier<T>::load(from + (j + i) * p_.ldb + l);
        }
        Eigen::internal::ptranspose(block);
        for (int i = 0; i < lanes<T>; ++i) {
          Multiplier<T>::store(to + (l + i * step) * width + j * step, block.packet[i]);
        }
      }
      for (; l < steps_ * step; ++l) {
        for (std::int64_t i = j; i < j + lanes<T>; ++i) {
          const bool is_there = i < columns && l < depth_;
          to[(l / step * width + i) * step + l % step] = is_there ? from[i * p_.ldb + l] : T();
        }
      }
    }
  }

  const BlockedGemm<T>& call_;
  const Gemm<T>& p_;
  std::int64_t group_;  // depth for which B is packed at a time
  std::int64_t first_depth_, first_column_, columns_, row_, rows_, depth_at_, depth_;
  std::int64_t steps_;  // multiplier steps in depth_
  bool packs_rows_;
  std::array<Sum, tile_rows * tile_vectors * lanes<T>> copy_;  // of a tile
};

}  // namespace palimpsest::PALIMPSEST_LEVEL
