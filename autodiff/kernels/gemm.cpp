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
constexpr double serial_volume = 1 << 19;
// With as many matrices as this, cutting them up only means packing more.
constexpr std::int64_t many_outputs = 16;

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

double volume_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

/// How a batch is cut into panels along the longer side of its matrices and into tasks, by its
/// shape alone.
struct Split {
  bool along_rows;
  std::int64_t size;    // of a panel along the longer side
  std::int64_t panels;  // of one matrix
  std::int64_t tasks;
  std::int64_t grain;

  Split(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs, std::int64_t terms)
      : along_rows(m >= n) {
    const std::int64_t longer = std::max(m, n);
    const double matrix =
        volume_of(m, n, k) * static_cast<double>(std::max<std::int64_t>(terms, 1));
    const std::int64_t wanted = longer >= 1024 ? 256 : 128;
    const bool whole = outputs >= many_outputs || matrix < serial_volume;
    const std::int64_t most = whole ? 1 : std::max<std::int64_t>(1, longer / wanted);
    size = ((longer + most - 1) / most + 15) / 16 * 16;
    panels = longer == 0 ? 0 : (longer + size - 1) / size;
    tasks = panels * outputs;
    if (matrix * static_cast<double>(outputs) < serial_volume) {
      grain = std::max<std::int64_t>(tasks, 1);
    } else {
      grain = grain_for(matrix / static_cast<double>(panels) / 8);
    }
  }

  bool is_serial() const { return tasks <= grain; }

  template <class T>
  Bytes share(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return along_rows ? gemm_workspace<T>(std::min(m, size), n, k)
                      : gemm_workspace<T>(m, std::min(n, size), k);
  }
};

std::int64_t count_of(std::span<const BatchAxis> axes) {
  std::int64_t count = 1;
  for (const BatchAxis& axis : axes) count *= axis.size;
  return count;
}

/// Moves the operands from index 0 of every axis to number `index`.
template <class T>
void move_to(Gemm<T>& product, std::span<const BatchAxis> axes, std::int64_t index) {
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::int64_t place = index % axes[i].size;
    index /= axes[i].size;
    product.a += place * axes[i].a;
    product.b += place * axes[i].b;
    product.c += place * axes[i].c;
  }
}

template <class T>
void cut_panel(Gemm<T>& product, bool along_rows, std::int64_t begin, std::int64_t size) {
  if (along_rows) {
    product.m = std::min(size, product.m - begin);
    product.a += begin * (product.transpose_a ? 1 : product.lda);
    product.c += begin * product.ldc;
  } else {
    product.n = std::min(size, product.n - begin);
    product.b += begin * (product.transpose_b ? product.ldb : 1);
    product.c += begin;
  }
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
void gemm_batch(const Gemm<T>& first, std::span<const BatchAxis> outputs,
                std::span<const BatchAxis> terms, std::span<std::byte> workspace) {
  const std::int64_t term_count = count_of(terms);
  const Split split(first.m, first.n, first.k, count_of(outputs), term_count);
  const auto share = static_cast<std::size_t>(split.share<T>(first.m, first.n, first.k));
  parallel_chunks(split.tasks, split.grain, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t thread = split.is_serial() ? 0 : static_cast<std::size_t>(thread_index());
    const auto scratch = share == 0 ? workspace : workspace.subspan(thread * share, share);
    for (std::int64_t task = begin; task < end; ++task) {
      Gemm<T> panel = first;
      move_to(panel, outputs, task / split.panels);
      cut_panel(panel, split.along_rows, task % split.panels * split.size, split.size);
      if (term_count == 0) panel.k = 0;  // an empty sum still has to be written
      for (std::int64_t term = 0; term < std::max<std::int64_t>(term_count, 1); ++term) {
        Gemm<T> product = panel;
        if (term_count > 1) move_to(product, terms, term);
        product.accumulate = first.accumulate || term > 0;
        gemm_serial(product, scratch);
      }
    }
  });
}

template <class T>
Bytes gemm_batch_workspace(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs,
                           std::int64_t terms, int threads) {
  const Split split(m, n, k, outputs, terms);
  if (split.tasks == 0) return 0;
  return split.share<T>(m, n, k) * (split.is_serial() ? 1 : threads);
}

template <class T>
void gemm(const Gemm<T>& product, std::span<std::byte> workspace) {
  gemm_batch(product, {}, {}, workspace);
}

template <class T>
Bytes parallel_gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  return gemm_batch_workspace<T>(m, n, k, 1, 1, threads);
}

template Bytes gemm_workspace<float>(std::int64_t, std::int64_t, std::int64_t);
template Bytes gemm_workspace<double>(std::int64_t, std::int64_t, std::int64_t);
template void gemm_serial(const Gemm<float>&, std::span<std::byte>);
template void gemm_serial(const Gemm<double>&, std::span<std::byte>);
template void gemm_batch(const Gemm<float>&, std::span<const BatchAxis>, std::span<const BatchAxis>,
                         std::span<std::byte>);
template void gemm_batch(const Gemm<double>&, std::span<const BatchAxis>,
                         std::span<const BatchAxis>, std::span<std::byte>);
template Bytes gemm_batch_workspace<float>(std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                           std::int64_t, int);
template Bytes gemm_batch_workspace<double>(std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                            std::int64_t, int);
template void gemm(const Gemm<float>&, std::span<std::byte>);
template void gemm(const Gemm<double>&, std::span<std::byte>);
template Bytes parallel_gemm_workspace<float>(std::int64_t, std::int64_t, std::int64_t, int);
template Bytes parallel_gemm_workspace<double>(std::int64_t, std::int64_t, std::int64_t, int);

}  // namespace palimpsest
