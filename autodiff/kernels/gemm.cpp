#include "autodiff/kernels/gemm.h"

#include <algorithm>

#include "autodiff/kernels/kernels.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

// A packed block of B stays in L2 while packed A streams past it.
template <class T>
constexpr std::int64_t most_depth = sizeof(T) == 4 ? 384 : 256;
constexpr std::int64_t most_columns = 240;
constexpr std::int64_t most_rows = 256;
// Below this, packing costs more than it saves.
constexpr std::int64_t unpacked_sizes = 20;

bool is_packed(std::int64_t m, std::int64_t n, std::int64_t k) {
  return m > 1 && n > 1 && m + n + k >= unpacked_sizes;
}

/// Elements rounded up to whole vector registers, with the slack Eigen's packing writes into.

struct Blocks {
  std::int64_t rows, columns, depth;
};

template <class T>
Blocks blocks_for(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {std::min(m, most_rows), std::min(n, most_columns), std::min(k, most_depth<T>)};
}

}  // namespace

template <class T>
Bytes gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k) {
  if (!is_packed(m, n, k)) return 0;
  const Blocks blocks = blocks_for<T>(m, n, k);
  const std::int64_t elements =
      round_up(blocks.rows * blocks.depth, 64) + round_up(blocks.columns * blocks.depth, 64);
  return elements * static_cast<Bytes>(sizeof(T));
}

template <class T>
void gemm_serial(const Gemm<T>& product, std::span<std::byte> workspace) {
  if (product.m == 0 || product.n == 0) return;
  const Blocks blocks = blocks_for<T>(product.m, product.n, product.k);
  BlockedGemm<T> call{product, blocks.rows, blocks.columns, blocks.depth, nullptr, nullptr};
  if (is_packed(product.m, product.n, product.k)) {
    call.packed_a = reinterpret_cast<T*>(workspace.data());
    call.packed_b = call.packed_a + round_up(blocks.rows * blocks.depth, 64);
  }
  if constexpr (sizeof(T) == 8) {
    kernels().gemm_f64(call);
  } else {
    kernels().gemm_f32(call);
  }
}

template Bytes gemm_workspace<float>(std::int64_t, std::int64_t, std::int64_t);
template Bytes gemm_workspace<double>(std::int64_t, std::int64_t, std::int64_t);
template void gemm_serial(const Gemm<float>&, std::span<std::byte>);
template void gemm_serial(const Gemm<double>&, std::span<std::byte>);

}  // namespace palimpsest
