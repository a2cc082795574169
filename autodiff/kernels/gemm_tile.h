#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "autodiff/kernels/gemm.h"

/// The inner loop of matrix products. It computes a tile of the result that stays in vector
/// registers during the loop over the depth.
namespace palimpsest::PALIMPSEST_LEVEL {

/// A vector register of sums.
template <class T>
using Packet = typename Eigen::internal::packet_traits<SumOf<T>>::type;
template <class T>
inline constexpr int lanes = Eigen::internal::unpacket_traits<Packet<T>>::size;

/// Loads and multiplies factors. A lane holds `step` factors along the depth, adjacent in memory.
template <class T>
struct Multiplier {
  static constexpr int step = 1;
  static Packet<T> load(const T* x) { return Eigen::internal::ploadu<Packet<T>>(x); }
  static void store(T* to, const Packet<T>& x) { Eigen::internal::pstore(to, x); }
  /// Packs `count` adjacent numbers at each depth of a step; the next depth is `next` elements
  /// further.
  static void pack(const T* x, std::int64_t /*next*/, std::int64_t count, T* to) {
    std::copy_n(x, count, to);
  }
  static Packet<T> repeat(const T* x) { return Eigen::internal::pset1<Packet<T>>(*x); }
  static Packet<T> multiply_add(const Packet<T>& a, const Packet<T>& b, const Packet<T>& sum) {
    return Eigen::internal::pmadd(a, b, sum);
  }
};

/// Size of a whole tile, in vectors of columns and in rows; it fits the registers.
inline constexpr int tile_vectors = 3;
inline constexpr int tile_rows = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 4;

/// A tile of C += α·A·B, or C = α·A·B, to which D is then added if given.
template <class T>
struct Tile {
  using Sum = SumOf<T>;
  std::int64_t depth;  ///< in steps of the multiplier
  Sum alpha;
  bool accumulate;
  const T* a;  ///< row i, depth l at i·a_row + l·a_step
  std::int64_t a_row, a_step;
  const T* b;  ///< depth l at l·b_step, its vectors adjacent
  std::int64_t b_step;
  Sum* c = nullptr;
  std::int64_t c_row = 0;
  const Sum* addend = nullptr;  ///< D, with the row stride of C
  T* kept = nullptr;            ///< destination for packing B, by depth; aligned
  const T* next = nullptr;      ///< prefetch address: B of the next tile for the first rows, else A
};

/// `First`: the tile belongs to the first rows; B is read from memory and packed for the other
/// rows. Each element is the same chain of multiply-adds over the depth in tiles of any size.
template <class T, int Rows, int Vectors, bool First>
void multiply_tile(const Tile<T>& tile) {
  using Eigen::internal::padd, Eigen::internal::pmul, Eigen::internal::pmadd;
  using Eigen::internal::ploadu, Eigen::internal::pstore, Eigen::internal::pstoreu;
  using Eigen::internal::prefetch, Eigen::internal::pset1;
  using P = Packet<T>;
  using Sum = SumOf<T>;
  constexpr int step = Multiplier<T>::step;
  P sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < Vectors; ++j) {
      sum[i][j] = pset1<P>(Sum(0));
      // Only one of them: rows of equal size would compete for the same cache sets.
      prefetch((tile.addend != nullptr ? tile.addend : tile.c) + i * tile.c_row + j * lanes<T>);
    }
  }
  const T* a = tile.a;
  const T* b = tile.b;
  T* kept = tile.kept;
  const T* next = tile.next;
  const std::int64_t a_row = tile.a_row;
  for (std::int64_t l = 0; l < tile.depth; ++l) {
    P x[Vectors];
#pragma GCC unroll 3
    for (int j = 0; j < Vectors; ++j) {
      x[j] = Multiplier<T>::load(b + j * lanes<T> * step);
      if constexpr (First) {
        pstore(kept + j * lanes<T>, x[j]);
        prefetch(next + j * lanes<T>);
      }
    }
    // With a single vector the additional loads would not be hidden.
    if constexpr (!First && Rows == tile_rows && Vectors > 1) {
      prefetch(next + l % Rows * a_row + l / Rows * Rows * step);
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const P factor = Multiplier<T>::repeat(a + i * a_row);
#pragma GCC unroll 3
      for (int j = 0; j < Vectors; ++j) {
        sum[i][j] = Multiplier<T>::multiply_add(factor, x[j], sum[i][j]);
      }
    }
    a += tile.a_step;
    b += tile.b_step;
    if constexpr (First) {
      kept += Vectors * lanes<T>;
      next += tile.b_step;
    }
  }
  const P alpha = pset1<P>(tile.alpha);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < Vectors; ++j) {
      const std::int64_t at = i * tile.c_row + j * lanes<T>;
      P made = tile.accumulate ? pmadd(alpha, sum[i][j], ploadu<P>(tile.c + at))
                               : pmul(alpha, sum[i][j]);
      if (tile.addend != nullptr) made = padd(made, ploadu<P>(tile.addend + at));
      pstoreu(tile.c + at, made);
    }
  }
}

template <class T>
using TileKernel = void (*)(const Tile<T>&);

/// The kernel for a tile of `rows` ≤ tile_rows and `vectors`. With `first`, rows must equal
/// tile_rows. A first kernel exists only if the multiplier's step is 1.
template <class T>
TileKernel<T> tile_kernel(std::int64_t rows, std::int64_t vectors, bool first) {
  constexpr auto others = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<TileKernel<T>, sizeof...(I)>{
        multiply_tile<T, I / tile_vectors + 1, I % tile_vectors + 1, false>...};
  }(std::make_integer_sequence<int, tile_rows * tile_vectors>());
  if constexpr (Multiplier<T>::step == 1) {
    constexpr auto firsts = []<int... I>(std::integer_sequence<int, I...>) {
      return std::array<TileKernel<T>, sizeof...(I)>{multiply_tile<T, tile_rows, I + 1, true>...};
    }(std::make_integer_sequence<int, tile_vectors>());
    if (first) return firsts[static_cast<std::size_t>(vectors - 1)];
  }
  return others[static_cast<std::size_t>((rows - 1) * tile_vectors + vectors - 1)];
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
