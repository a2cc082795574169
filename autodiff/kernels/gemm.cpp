#include "autodiff/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <utility>

#include "autodiff/kernels/kernels.h"
#include "autodiff/parallel.h"

namespace palimpsest {

template <class T>
bool has_own_products() {
  return sizeof(T) != 4 || kernels().product_library == nullptr;
}

namespace {

// A packed block of B stays in L2 during the loop over the rows of A.
template <class T>
constexpr std::int64_t most_depth = sizeof(T) == 8 ? 256 : 1536 / sizeof(T);
template <class T>
constexpr std::int64_t most_columns = sizeof(T) == 8 ? 336 : 480;
// bf16 is multiplied in pairs along the depth, and packed to whole pairs.
template <class T>
constexpr std::int64_t depth_step = sizeof(T) == 2 ? 2 : 1;
// Bounds for all levels: the columns of a whole tile divide `tile_columns`, its rows are at most
// `tile_rows`.
constexpr std::int64_t tile_columns = 48;
constexpr std::int64_t tile_rows = 8;
// With at most this many rows or columns, the long operand is better not packed.
constexpr std::int64_t narrow = 32;
constexpr std::int64_t narrow_columns = 3 * tile_columns;
// Below this sum of sizes a plain loop is faster than a tile.
constexpr std::int64_t unpacked_sizes = 20;
// The depth from which Eigen computes a product of one row, in which it divides the sums.
constexpr std::int64_t divided_row = 128;

template <class T>
bool is_packed(std::int64_t m, std::int64_t n, std::int64_t k) {
  if constexpr (sizeof(T) == 2) return k > 0;
  return has_own_products<T>() && m > 1 && n > 1 && k > 0 && m + n + k >= unpacked_sizes;
}

/// The depth of a block. All blocks of a product have nearly the same depth.
template <class T>
std::int64_t depth_at_once(std::int64_t k) {
  return k <= most_depth<T> ? k : round_up(divide_up(k, divide_up(k, most_depth<T>)), vector_size);
}

/// True if computing Cᵀ = op(B)ᵀ·op(A)ᵀ avoids packing the long operand. A transposed A is then the
/// right operand and is read by rows. A transposed B is then the left operand, whose rows run along
/// the depth, and is read element by element.
template <class T>
bool is_better_transposed(const Gemm<T>& p) {
  return (p.transpose_a && p.n <= narrow && p.n < p.m) ||
         (p.transpose_b && p.m <= narrow && p.m < p.n);
}

/// Columns packed at once, of op(B) or of a long op(A)ᵀ. Few if only few rows use them.
template <class T>
std::int64_t columns_at_once(std::int64_t m, std::int64_t n) {
  const std::int64_t most = std::min(m, n) <= narrow ? narrow_columns : most_columns<T>;
  return std::min(most, round_up(std::max(n, std::min(m, narrow_columns)), vector_size));
}

/// The product Cᵀ = op(B)ᵀ·op(A)ᵀ of one row, for a C of one column without gaps.
template <class T>
Gemm<T> as_row(const Gemm<T>& p) {
  return {.transpose_a = !p.transpose_b,
          .transpose_b = !p.transpose_a,
          .m = 1,
          .n = p.m,
          .k = p.k,
          .lda = p.ldb,
          .ldb = p.lda,
          .ldc = p.m};
}

template <class T, SmallGemm<T> SmallGemms<T>::* kernel>
void multiply_as_row(const Gemm<T>& p, const T* a, const T* b, const T* addend, T* c) {
  (kernels().small_gemms<T>().*kernel)(as_row(p), b, a, addend, c);
}

/// A product so small that preparing tiles takes longer than they save. Tiles divide a greater
/// depth, so its bits would differ.
template <class T>
bool is_small_matrix(const Gemm<T>& p) {
  constexpr std::int64_t size = sizeof(T);
  constexpr std::int64_t nearest_cache = 32768;
  if (p.m < 2 || p.n < 2 || p.k == 0 || p.k > most_depth<T>) return false;
  if (p.transpose_b ? p.k * p.n > small_matrix_elements : p.k * p.ldb * size > nearest_cache) {
    return false;
  }
  const double volume =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  // Tiles are faster above these volumes, as measured on Zen 4 for all transposes.
  if (p.n * size < 16) return volume <= 1024;  // a row is less than the smallest register
  if (is_better_transposed(p) && (p.transpose_b || p.n * size < 32)) return volume <= 4096;
  return volume <= 131072;
}

bool is_short_row(std::int64_t n, std::int64_t k, bool transpose_b) {
  return n > 1 && k > 0 && (transpose_b ? k <= longest_dot : k < divided_row);
}

}  // namespace

template <class T>
SmallGemm<T> small_gemm(const Gemm<T>& p) {
  if (!has_own_products<T>() || p.accumulate) return nullptr;
  using Kernels = SmallGemms<T>;
  const Kernels& all = kernels().small_gemms<T>();
  const bool has_dense_row = !p.transpose_b || p.ldb == 1;
  if (p.m > 1 && p.n > 1 && p.k == 1 && has_dense_row) return all.outer;
  if (p.alpha != T(1)) return nullptr;
  if (is_small_matrix(p)) return all.matrix;
  if (p.m == 1 && is_short_row(p.n, p.k, p.transpose_b)) {
    return p.transpose_b ? all.dots : all.row;
  }
  if (p.n == 1 && p.ldc == 1 && is_short_row(p.m, p.k, !p.transpose_a)) {
    return p.transpose_a ? multiply_as_row<T, &Kernels::row> : multiply_as_row<T, &Kernels::dots>;
  }
  return nullptr;
}

bool multiplies_bf16() { return kernels().gemm_bf16 != nullptr; }

template <class T>
Bytes gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k) {
  if (!is_packed<T>(m, n, k)) return 0;
  const std::int64_t depth = round_up(std::min(k, most_depth<T>), depth_step<T>);
  const std::int64_t elements = (columns_at_once<T>(m, n) + tile_rows) * depth;
  return elements * static_cast<Bytes>(sizeof(T));
}

template <class T>
bool gemm_writes_once(std::int64_t m, std::int64_t n, std::int64_t k) {
  if (!has_own_products<T>() || n < 2 || k == 0) return false;
  // The last two vectors of any other row overlap.
  if (m == 1) return n % vector_size == 0 && k < divided_row;
  const std::int64_t smallest_part = std::min(m, n) + 2 + k;
  return m > 1 && k <= most_depth<T> && smallest_part >= unpacked_sizes;
}

template <class T>
BlockedGemm<T> blocked(const Gemm<T>& product) {
  const auto [m, n, k] = std::array{product.m, product.n, product.k};
  BlockedGemm<T> call{.product = product};
  if (!is_packed<T>(m, n, k)) return call;
  const std::int64_t room = columns_at_once<T>(m, n);
  Gemm<T>& p = call.product;
  call.transpose_c = is_better_transposed(product);
  if (call.transpose_c) {
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    std::swap(p.lda, p.ldb);
    p.transpose_a = !product.transpose_b;
    p.transpose_b = !product.transpose_a;
  }
  const std::int64_t blocks = divide_up(p.n, room);
  call.columns_block = blocks == 1 ? p.n : round_up(divide_up(p.n, blocks), tile_columns);
  call.depth_block = depth_at_once<T>(k);
  call.packed_size = room * round_up(call.depth_block, depth_step<T>);
  return call;
}

template <class T>
void run_blocked(BlockedGemm<T>& call, std::byte* workspace) {
  if (call.packed_size > 0) {
    call.packed_b = reinterpret_cast<T*>(workspace);
    call.packed_a = call.packed_b + call.packed_size;
  }
  if constexpr (sizeof(T) == 8) {
    kernels().gemm_f64(call);
  } else if constexpr (sizeof(T) == 2) {
    kernels().gemm_bf16(call);
  } else {
    kernels().gemm_f32(call);
  }
}

template <class T>
void gemm_serial(const Gemm<T>& product, std::span<std::byte> workspace) {
  if (product.m == 0 || product.n == 0) return;
  if constexpr (sizeof(T) > 2) {
    const SmallGemm<T> small = small_gemm(product);
    if (small != nullptr) {
      return small(product, product.a, product.b, product.addend, product.c);
    }
  }
  BlockedGemm<T> call = blocked(product);
  run_blocked(call, workspace.data());
}

template SmallGemm<float> small_gemm(const Gemm<float>&);
template SmallGemm<double> small_gemm(const Gemm<double>&);
template bool has_own_products<float>();
template bool has_own_products<double>();
template bool has_own_products<BFloat16>();
template bool gemm_writes_once<float>(std::int64_t, std::int64_t, std::int64_t);
template bool gemm_writes_once<double>(std::int64_t, std::int64_t, std::int64_t);
template Bytes gemm_workspace<float>(std::int64_t, std::int64_t, std::int64_t);
template Bytes gemm_workspace<double>(std::int64_t, std::int64_t, std::int64_t);
template Bytes gemm_workspace<BFloat16>(std::int64_t, std::int64_t, std::int64_t);
template BlockedGemm<float> blocked(const Gemm<float>&);
template BlockedGemm<double> blocked(const Gemm<double>&);
template void run_blocked(BlockedGemm<float>&, std::byte*);
template void run_blocked(BlockedGemm<double>&, std::byte*);
template void gemm_serial(const Gemm<float>&, std::span<std::byte>);
template void gemm_serial(const Gemm<double>&, std::span<std::byte>);
template void gemm_serial(const Gemm<BFloat16>&, std::span<std::byte>);

}  // namespace palimpsest
