#include <Eigen/Core>
#include <algorithm>
#include <array>

#include "autodiff/kernels/gemm_tile.h"
#include "autodiff/kernels/level.h"
#include "autodiff/parallel.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

using Eigen::ColMajor;
using Eigen::RowMajor;

template <class T>
using Rows =
    Eigen::Map<const Eigen::Matrix<T, -1, -1, RowMajor>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using Columns =
    Eigen::Map<const Eigen::Matrix<T, -1, -1, ColMajor>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using Result =
    Eigen::Map<Eigen::Matrix<T, -1, -1, RowMajor>, Eigen::Unaligned, Eigen::OuterStride<>>;

/// One product, tile by tile: blocks of B are packed while the first rows are at work on them and
/// stay in L2, A is read where it lies or, when its columns lie in rows, tile by tile from a copy.
template <class T>
class TiledGemm {
 public:
  explicit TiledGemm(const BlockedGemm<T>& call) : call_(call), p_(call.product) {
    // B packed to its whole depth lets each row of A be read to its end.
    const bool whole = !p_.transpose_a && call.columns_block >= p_.n &&
                       p_.k * round_up(p_.n, lanes<T>) <= call.packed_size;
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
  /// All tiles of the rows and columns in hand, at one block of the depth.
  void run_rows() {
    depth_ = std::min(call_.depth_block, p_.k - depth_at_);
    if (p_.transpose_a) pack_rows();
    for (std::int64_t j = 0, vectors; j < columns_; j += vectors * lanes<T>) {
      const std::int64_t left = divide_up(columns_ - j, lanes<T>);
      vectors = left == 4 ? 2 : std::min<std::int64_t>(left, tile_vectors);
      run_tile(j, vectors);
    }
  }

  void run_tile(std::int64_t j, std::int64_t vectors) {
    const std::int64_t width = vectors * lanes<T>;
    const std::int64_t columns = std::min(width, columns_ - j);
    T* panel =
        call_.packed_b + (depth_at_ - first_depth_) * round_up(columns_, lanes<T>) + j * depth_;
    const bool is_last = j + columns == columns_;
    const bool has_more = p_.m - row_ >= 2 * tile_rows;
    Tile<T> tile{.depth = depth_,
                 .alpha = p_.alpha,
                 .accumulate = p_.accumulate || depth_at_ > 0,
                 .a = p_.a + row_ * p_.lda + depth_at_,
                 .a_row = p_.lda,
                 .a_step = 1,
                 .b = panel,
                 .b_step = width,
                 .kept = panel};
    tile.next = tile.a + (is_last && has_more ? tile_rows * p_.lda : 0);
    if (p_.transpose_a) {
      tile.next = tile.a = call_.packed_a;
      tile.a_row = 1;
      tile.a_step = rows_;
    }
    bool first = false;
    if (row_ == 0) {
      const T* from = p_.b + depth_at_ * (p_.transpose_b ? 1 : p_.ldb) +
                      (first_column_ + j) * (p_.transpose_b ? p_.ldb : 1);
      if (p_.transpose_b || columns < width) {
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

  /// Runs the kernel on C where the tile lies there whole, else on a copy of its part of C. A copy
  /// that is all of the rows stays until their depth has gone by.
  void finish_tile(Tile<T>& tile, TileKernel<T> kernel, std::int64_t j, std::int64_t columns) {
    const std::int64_t row_step = call_.transpose_c ? 1 : p_.ldc;
    const std::int64_t column_step = call_.transpose_c ? p_.ldc : 1;
    const std::int64_t width = tile.c_row;
    const std::int64_t at = row_ * row_step + (first_column_ + j) * column_step;
    T* c = p_.c + at;
    const T* addend = tile.addend == nullptr ? nullptr : tile.addend + at;
    if (columns == width && !call_.transpose_c) {
      tile.c = c;
      tile.addend = addend;
      tile.c_row = p_.ldc;
      kernel(tile);
      return;
    }
    T* const copy = copy_.data();
    T addend_copy[tile_rows * tile_vectors * lanes<T>];
    const auto for_elements = [&](auto f) {
      for (std::int64_t s = 0; s < columns; ++s) {
        for (std::int64_t r = 0; r < rows_; ++r) f(r * width + s, r * row_step + s * column_step);
      }
    };
    const auto take = [&](const T* from, T* to) {
      std::fill_n(to, rows_ * width, T(0));
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

  /// The rows in hand, depth after depth.
  void pack_rows() const {
    const T* from = p_.a + depth_at_ * p_.lda + row_;
    T* to = call_.packed_a;
    const auto pack = [&](std::int64_t rows) {
      for (std::int64_t l = 0; l < depth_; ++l) {
        for (std::int64_t r = 0; r < rows; ++r) to[l * rows + r] = from[l * p_.lda + r];
      }
    };
    if (rows_ == tile_rows)
      pack(tile_rows);
    else
      pack(rows_);
  }

  /// Columns of op(B), depth after depth, filled up with zeros to whole vectors.
  void pack_columns(const T* from, std::int64_t columns, std::int64_t width, T* to) const {
    if (!p_.transpose_b) {
      for (std::int64_t l = 0; l < depth_; ++l, from += p_.ldb, to += width) {
        std::copy_n(from, columns, to);
        std::fill_n(to + columns, width - columns, T(0));
      }
      return;
    }
    for (std::int64_t j = 0; j < width; j += lanes<T>) {
      std::int64_t l = 0;
      for (; j + lanes<T> <= columns && l + lanes<T> <= depth_; l += lanes<T>) {
        Eigen::internal::PacketBlock<Packet<T>, lanes<T>> block;
        for (int i = 0; i < lanes<T>; ++i) {
          block.packet[i] = Eigen::internal::ploadu<Packet<T>>(from + (j + i) * p_.ldb + l);
        }
        Eigen::internal::ptranspose(block);
        for (int i = 0; i < lanes<T>; ++i) {
          Eigen::internal::pstore(to + (l + i) * width + j, block.packet[i]);
        }
      }
      for (; l < depth_; ++l) {
        for (std::int64_t i = j; i < j + lanes<T>; ++i) {
          to[l * width + i] = i < columns ? from[i * p_.ldb + l] : T(0);
        }
      }
    }
  }

  const BlockedGemm<T>& call_;
  const Gemm<T>& p_;
  std::int64_t group_;  // the depth to which B is packed at a time
  std::int64_t first_depth_, first_column_, columns_, row_, rows_, depth_at_, depth_;
  std::array<T, tile_rows * tile_vectors * lanes<T>> copy_;  // of a tile
};

/// Calls `f` with op(A) and op(B) as Eigen expressions.
template <class T, class F>
void with_operands(const Gemm<T>& p, F f) {
  const Eigen::OuterStride<> a(p.lda);
  const Eigen::OuterStride<> b(p.ldb);
  if (p.transpose_a && p.transpose_b) {
    f(Columns<T>(p.a, p.m, p.k, a), Columns<T>(p.b, p.k, p.n, b));
  } else if (p.transpose_a) {
    f(Columns<T>(p.a, p.m, p.k, a), Rows<T>(p.b, p.k, p.n, b));
  } else if (p.transpose_b) {
    f(Rows<T>(p.a, p.m, p.k, a), Columns<T>(p.b, p.k, p.n, b));
  } else {
    f(Rows<T>(p.a, p.m, p.k, a), Rows<T>(p.b, p.k, p.n, b));
  }
}

/// y += α·M·x for an Eigen matrix M, in pieces for which x and y, where they are strided, are
/// copied to the stack: Eigen would allocate.
template <class T, class M>
void matrix_vector(T alpha, const M& matrix, const T* x, std::int64_t x_step, T* y,
                   std::int64_t y_step) {
  constexpr std::int64_t most = 512;
  using Vector = Eigen::Matrix<T, -1, 1>;
  alignas(64) T x_copy[most];
  alignas(64) T y_copy[most];
  const std::int64_t depth = x_step == 1 ? matrix.cols() : most;
  const std::int64_t rows = y_step == 1 ? matrix.rows() : most;
  for (std::int64_t first = 0; first < matrix.rows(); first += rows) {
    const std::int64_t height = first + rows < matrix.rows() ? rows : matrix.rows() - first;
    T* to = y + first * y_step;
    Eigen::Map<Vector> sum(y_step == 1 ? to : y_copy, height);
    if (y_step != 1) sum.setZero();
    for (std::int64_t at = 0; at < matrix.cols(); at += depth) {
      const std::int64_t width = at + depth < matrix.cols() ? depth : matrix.cols() - at;
      const T* from = x + at * x_step;
      if (x_step != 1) {
        for (std::int64_t i = 0; i < width; ++i) x_copy[i] = from[i * x_step];
      }
      const Eigen::Map<const Vector> factor(x_step == 1 ? from : x_copy, width);
      sum.noalias() += alpha * (matrix.block(first, at, height, width) * factor);
    }
    if (y_step != 1) {
      for (std::int64_t i = 0; i < height; ++i) to[i * y_step] += y_copy[i];
    }
  }
}

/// Products too small, or too narrow, for tiles.
template <class T>
void multiply_unpacked(const Gemm<T>& p) {
  Result<T> c(p.c, p.m, p.n, Eigen::OuterStride<>(p.ldc));
  if (!p.accumulate) c.setZero();
  if (p.k == 0) return;
  if (p.n == 1) {
    with_operands(p, [&](const auto& a, const auto&) {
      matrix_vector(p.alpha, a, p.b, p.transpose_b ? 1 : p.ldb, p.c, p.ldc);
    });
  } else if (p.m == 1) {
    with_operands(p, [&](const auto&, const auto& b) {
      matrix_vector(p.alpha, b.transpose(), p.a, p.transpose_a ? p.lda : 1, p.c, 1);
    });
  } else {
    with_operands(p, [&](const auto& a, const auto& b) { c += p.alpha * a.lazyProduct(b); });
  }
}

template <class T>
void gemm(const BlockedGemm<T>& call) {
  const Gemm<T>& p = call.product;
  if (call.packed_b != nullptr && p.k > 0) {
    TiledGemm<T>(call).run();
    return;
  }
  multiply_unpacked(p);
  if (p.addend == nullptr) return;
  for (std::int64_t i = 0; i < p.m * p.ldc; i += p.ldc) {
    for (std::int64_t j = i; j < i + p.n; ++j) p.c[j] += p.addend[j];
  }
}

}  // namespace

void add_gemm(Kernels& kernels) {
  kernels.gemm_f32 = gemm<float>;
  kernels.gemm_f64 = gemm<double>;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
