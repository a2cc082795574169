#include "autodiff/kernels/gemm.h"

#include <algorithm>

#include "autodiff/kernels/kernels.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

// A packed block of B stays in L2 while packed A streams past it.
constexpr std::int64_t most_depth = 256;
constexpr std::int64_t most_columns = 240;
constexpr std::int64_t most_rows = 256;
// Below this, packing costs more than it saves.
constexpr std::int64_t unpacked_volume = 16 * 16 * 16;
// Below this, a second thread costs more than it saves.
constexpr std::int64_t serial_volume = 1 << 19;

bool is_packed(std::int64_t m, std::int64_t n, std::int64_t k) {
  return m > 1 && n > 1 && m * n * k > unpacked_volume;
}

/// Elements rounded up to whole vector registers, with the slack Eigen's packing writes into.
std::int64_t padded(std::int64_t elements) { return (elements + 63) / 64 * 64; }

struct Blocks {
  std::int64_t rows, columns, depth;
};

template <class T>
Blocks blocks_for(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t shrink = sizeof(T) / sizeof(float);
  return {std::min(m, most_rows), std::min(n, most_columns), std::min(k, most_depth / shrink)};
}

/// How a product is cut along its longer side, by its shape alone.
struct Panels {
  bool along_rows;
  std::int64_t count;
  std::int64_t size;

  Panels(std::int64_t m, std::int64_t n, std::int64_t k) : along_rows(m >= n) {
    const std::int64_t longer = std::max(m, n);
    const std::int64_t wanted = longer >= 1024 ? 256 : 128;
    count = m * n * k < serial_volume ? 1 : std::max<std::int64_t>(1, longer / wanted);
    size = ((longer + count - 1) / count + 15) / 16 * 16;
    count = longer == 0 ? 0 : (longer + size - 1) / size;
  }
};

template <class T>
Bytes panel_workspace(const Panels& panels, std::int64_t m, std::int64_t n, std::int64_t k) {
  return panels.along_rows ? gemm_workspace<T>(std::min(m, panels.size), n, k)
                           : gemm_workspace<T>(m, std::min(n, panels.size), k);
}

}  // namespace

template <class T>
Bytes gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k) {
  if (!is_packed(m, n, k)) return 0;
  const Blocks blocks = blocks_for<T>(m, n, k);
  const std::int64_t elements =
      padded(blocks.rows * blocks.depth) + padded(blocks.columns * blocks.depth);
  return elements * static_cast<Bytes>(sizeof(T));
}

template <class T>
void gemm_serial(const Gemm<T>& product, std::span<std::byte> workspace) {
  if (product.m == 0 || product.n == 0) return;
  const Blocks blocks = blocks_for<T>(product.m, product.n, product.k);
  BlockedGemm<T> call{product, blocks.rows, blocks.columns, blocks.depth, nullptr, nullptr};
  if (is_packed(product.m, product.n, product.k)) {
    call.packed_a = reinterpret_cast<T*>(workspace.data());
    call.packed_b = call.packed_a + padded(blocks.rows * blocks.depth);
  }
  if constexpr (sizeof(T) == 8) {
    kernels().gemm_f64(call);
  } else {
    kernels().gemm_f32(call);
  }
}

template <class T>
Bytes parallel_gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  const Panels panels(m, n, k);
  if (panels.count == 0) return 0;
  return panel_workspace<T>(panels, m, n, k) * (panels.count == 1 ? 1 : threads);
}

template <class T>
void gemm(const Gemm<T>& product, std::span<std::byte> workspace) {
  const Panels panels(product.m, product.n, product.k);
  const auto share =
      static_cast<std::size_t>(panel_workspace<T>(panels, product.m, product.n, product.k));
  const std::int64_t longer = panels.along_rows ? product.m : product.n;
  parallel_chunks(longer, panels.size, [&](std::int64_t begin, std::int64_t end) {
    Gemm<T> panel = product;
    if (panels.along_rows) {
      panel.m = end - begin;
      panel.a += begin * (product.transpose_a ? 1 : product.lda);
      panel.c += begin * product.ldc;
    } else {
      panel.n = end - begin;
      panel.b += begin * (product.transpose_b ? product.ldb : 1);
      panel.c += begin;
    }
    const std::size_t thread = panels.count == 1 ? 0 : static_cast<std::size_t>(thread_index());
    gemm_serial(panel, share == 0 ? workspace : workspace.subspan(thread * share, share));
  });
}

template Bytes gemm_workspace<float>(std::int64_t, std::int64_t, std::int64_t);
template Bytes gemm_workspace<double>(std::int64_t, std::int64_t, std::int64_t);
template void gemm_serial(const Gemm<float>&, std::span<std::byte>);
template void gemm_serial(const Gemm<double>&, std::span<std::byte>);
template Bytes parallel_gemm_workspace<float>(std::int64_t, std::int64_t, std::int64_t, int);
template Bytes parallel_gemm_workspace<double>(std::int64_t, std::int64_t, std::int64_t, int);
template void gemm(const Gemm<float>&, std::span<std::byte>);
template void gemm(const Gemm<double>&, std::span<std::byte>);

}  // namespace palimpsest
