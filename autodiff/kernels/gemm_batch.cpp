#include <algorithm>

#include "autodiff/execute.h"
#include "autodiff/kernels/gemm.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

// Below this many multiplications a second thread costs more than it saves.
constexpr double serial_volume = 1 << 19;
// With at least this many matrices, splitting them only increases the packing.
constexpr std::int64_t many_outputs = 16;
// Several panels per thread balance the load, but each panel packs again.
constexpr std::int64_t panels_per_thread = 2;
constexpr std::int64_t least_panel = 128;
// If the bits depend on the panels, these depend on the shape only. They are large enough for a
// library's packing to pay, and there are enough for any number of threads.
constexpr std::int64_t library_panel = 256;
// A sum is split only if each part has at least this length.
constexpr std::int64_t slice_depth = 1024;
constexpr std::int64_t most_tasks_by_slices = 16;
constexpr std::int64_t most_sliced_elements = 1 << 16;

/// Partition of a batch into tasks. Each matrix is split into panels along its longer side, a few
/// per thread. If that gives few tasks for long sums, each sum is split into slices that are added
/// afterwards. Slices depend on the shape only, because the bits depend on them. Panels do as well,
/// unless the kernels are our `own`.
struct Split {
  std::int64_t m, n, k, outputs, terms;
  bool along_rows;
  std::int64_t size = 0;    // size of a panel along the longer side
  std::int64_t panels = 0;  // per matrix
  std::int64_t slices = 1;  // per sum
  std::int64_t tasks = 0;
  std::int64_t grain = 1;

  Split(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs, std::int64_t terms,
        int threads, bool own)
      : m(m), n(n), k(k), outputs(outputs), terms(terms), along_rows(m >= n) {
    if (m == 0 || n == 0 || outputs == 0) return;
    const std::int64_t longer = std::max(m, n);
    const double matrix = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                          static_cast<double>(std::max(terms, one));
    const bool is_vector = m == 1 || n == 1;
    const bool whole = outputs >= many_outputs || matrix < serial_volume;
    const std::int64_t panel = own ? least_panel : library_panel;
    const std::int64_t least = is_vector && longer >= 1024 ? 2 * least_panel : panel;
    const std::int64_t most = whole ? 1 : std::max(one, longer / least);
    if (m * n <= most_sliced_elements) {
      const double by_volume = matrix / static_cast<double>(most) / serial_volume;
      const double by_depth = static_cast<double>(k) * static_cast<double>(terms) / slice_depth;
      slices = static_cast<std::int64_t>(
          std::min({by_volume, by_depth, static_cast<double>(sum_length()),
                    static_cast<double>(most_tasks_by_slices / (most * outputs))}));
      slices = std::max(slices, one);
    }
    std::int64_t wanted = most;
    if (own && !is_vector) {  // otherwise bits may depend on panels
      wanted = threads == 1 ? 1 : divide_up(panels_per_thread * threads, outputs * slices);
    }
    size = round_up(divide_up(longer, std::min(most, wanted)), vector_size);
    while (longer > 1 && longer % size == 1)
      size += vector_size;  // no panel may be a single vector
    panels = divide_up(longer, size);
    tasks = panels * slices * outputs;
    const double each = matrix / static_cast<double>(panels * slices);
    grain = each * static_cast<double>(tasks) < serial_volume ? tasks : grain_for(each / 8);
  }

  bool is_serial() const { return tasks <= grain; }
  /// Length of the sums that are sliced: the terms, or the depth of a single product.
  std::int64_t sum_length() const { return terms > 1 ? terms : k; }

  /// Bytes of packing space for one thread.
  template <class T>
  Bytes share() const {
    return aligned(along_rows ? gemm_workspace<T>(std::min(m, size), n, k)
                              : gemm_workspace<T>(m, std::min(n, size), k));
  }
  template <class T>
  Bytes shares(int threads) const {
    return tasks == 0 ? 0 : share<T>() * (is_serial() ? 1 : threads);
  }
  /// Bytes of all slices except the first, which is written to the result.
  template <class T>
  Bytes partial_bytes() const {
    return aligned(outputs * (slices - 1) * m * n * static_cast<Bytes>(sizeof(SumOf<T>)));
  }

 private:
  static constexpr std::int64_t one = 1;
};

std::int64_t count_of(std::span<const BatchAxis> axes) {
  std::int64_t count = 1;
  for (const BatchAxis& axis : axes) count *= axis.size;
  return count;
}

/// Advances C and the addend by `elements`.
template <class T>
void move_result(Gemm<T>& product, std::int64_t elements) {
  product.c += elements;
  if (product.addend != nullptr) product.addend += elements;
}

/// Advances the operands from index 0 of every axis to product number `index`.
template <class T>
void move_to(Gemm<T>& product, std::span<const BatchAxis> axes, std::int64_t index) {
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::int64_t place = index % axes[i].size;
    index /= axes[i].size;
    product.a += place * axes[i].a;
    product.b += place * axes[i].b;
    move_result(product, place * axes[i].c);
  }
}

template <class T>
void cut_panel(Gemm<T>& product, bool along_rows, std::int64_t begin, std::int64_t size) {
  if (along_rows) {
    product.m = std::min(size, product.m - begin);
    product.a += begin * (product.transpose_a ? 1 : product.lda);
    move_result(product, begin * product.ldc);
  } else {
    product.n = std::min(size, product.n - begin);
    product.b += begin * (product.transpose_b ? product.ldb : 1);
    move_result(product, begin);
  }
}

template <class T>
void cut_depth(Gemm<T>& product, std::int64_t begin, std::int64_t end) {
  product.a += begin * (product.transpose_a ? product.lda : 1);
  product.b += begin * (product.transpose_b ? 1 : product.ldb);
  product.k = end - begin;
}

/// Adds slices 1, 2, … of every sum to slice 0 in this order, then the addend.
template <class T>
void add_slices(const Gemm<T>& first, std::span<const BatchAxis> outputs, const Split& split,
                const SumOf<T>* partial) {
  const std::int64_t elements = split.m * split.n;
  parallel_chunks(split.outputs * split.m, grain_for(static_cast<double>(split.n * split.slices)),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row) {
                      Gemm<T> at = first;
                      move_to(at, outputs, row / split.m);
                      SumOf<T>* to = at.c + row % split.m * at.ldc;
                      const SumOf<T>* from = partial +
                                             row / split.m * (split.slices - 1) * elements +
                                             row % split.m * split.n;
                      for (std::int64_t slice = 1; slice < split.slices; ++slice) {
                        for (std::int64_t j = 0; j < split.n; ++j) to[j] += from[j];
                        from += elements;
                      }
                      if (at.addend == nullptr) continue;
                      const SumOf<T>* addend = at.addend + row % split.m * at.ldc;
                      for (std::int64_t j = 0; j < split.n; ++j) to[j] += addend[j];
                    }
                  });
}

/// One task: a panel of one slice of one sum. It is written to the result or to the slice's own
/// memory.
template <class T>
void run_task(Gemm<T> panel, std::span<const BatchAxis> outputs, std::span<const BatchAxis> terms,
              const Split& split, std::int64_t task, SumOf<T>* partial,
              std::span<std::byte> scratch) {
  const std::int64_t output = task / (split.panels * split.slices);
  const std::int64_t slice = task / split.panels % split.slices;
  if (split.slices > 1) panel.addend = nullptr;
  move_to(panel, outputs, output);
  if (slice > 0) {
    panel.c = partial + (output * (split.slices - 1) + slice - 1) * split.m * split.n;
    panel.ldc = split.n;
    panel.accumulate = false;
  }
  cut_panel(panel, split.along_rows, task % split.panels * split.size, split.size);
  const std::int64_t begin = slice * split.sum_length() / split.slices;
  const std::int64_t end = (slice + 1) * split.sum_length() / split.slices;
  if (split.terms <= 1) {
    if (split.terms == 1) cut_depth(panel, begin, end);
    if (split.terms == 0) panel.k = 0;  // an empty sum must still be written
    gemm_serial(panel, scratch);
    return;
  }
  for (std::int64_t term = begin; term < end; ++term) {
    Gemm<T> product = panel;
    move_to(product, terms, term);
    product.accumulate = panel.accumulate || term > begin;
    if (term + 1 < end) product.addend = nullptr;
    gemm_serial(product, scratch);
  }
}

}  // namespace

bool gemm_is_serial(std::int64_t m, std::int64_t n, std::int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < serial_volume;
}

template <class T>
void gemm_batch(const Gemm<T>& first, std::span<const BatchAxis> outputs,
                std::span<const BatchAxis> terms, std::span<std::byte> workspace) {
  if (outputs.empty() && terms.empty() && gemm_is_serial(first.m, first.n, first.k)) {
    return gemm_serial(first, workspace);  // as `Split` would have it
  }
  const Split split(first.m, first.n, first.k, count_of(outputs), count_of(terms), max_threads(),
                    has_own_products<T>());
  const auto share = static_cast<std::size_t>(split.share<T>());
  auto* partial = reinterpret_cast<SumOf<T>*>(workspace.data());
  const auto scratch = workspace.subspan(static_cast<std::size_t>(split.partial_bytes<T>()));
  parallel_chunks(split.tasks, split.grain, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t thread = split.is_serial() ? 0 : static_cast<std::size_t>(thread_index());
    const auto own = share == 0 ? scratch : scratch.subspan(thread * share, share);
    for (std::int64_t task = begin; task < end; ++task) {
      run_task(first, outputs, terms, split, task, partial, own);
    }
  });
  if (split.slices > 1) add_slices(first, outputs, split, partial);
}

template <class T>
Bytes gemm_batch_workspace(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs,
                           std::int64_t terms, int threads) {
  Bytes most = 0;  // for any number of threads that may exist at run time
  for (int some = 1; some <= threads; ++some) {
    const Split split(m, n, k, outputs, terms, some, has_own_products<T>());
    most = std::max(most, split.partial_bytes<T>() + split.shares<T>(some));
  }
  return most;
}

template <class T>
bool gemm_batch_adds_in_place(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs,
                              std::int64_t terms) {
  return terms == 1 && gemm_writes_once<T>(m, n, k) &&
         Split(m, n, k, outputs, terms, 1, true).slices == 1;
}

template <class T>
void gemm(const Gemm<T>& product, std::span<std::byte> workspace) {
  gemm_batch(product, {}, {}, workspace);
}

template <class T>
Bytes parallel_gemm_workspace(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  return gemm_batch_workspace<T>(m, n, k, 1, 1, threads);
}

template void gemm_batch(const Gemm<float>&, std::span<const BatchAxis>, std::span<const BatchAxis>,
                         std::span<std::byte>);
template void gemm_batch(const Gemm<double>&, std::span<const BatchAxis>,
                         std::span<const BatchAxis>, std::span<std::byte>);
template void gemm_batch(const Gemm<BFloat16>&, std::span<const BatchAxis>,
                         std::span<const BatchAxis>, std::span<std::byte>);
template Bytes gemm_batch_workspace<BFloat16>(std::int64_t, std::int64_t, std::int64_t,
                                              std::int64_t, std::int64_t, int);
template Bytes gemm_batch_workspace<float>(std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                           std::int64_t, int);
template Bytes gemm_batch_workspace<double>(std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                            std::int64_t, int);
template bool gemm_batch_adds_in_place<float>(std::int64_t, std::int64_t, std::int64_t,
                                              std::int64_t, std::int64_t);
template bool gemm_batch_adds_in_place<double>(std::int64_t, std::int64_t, std::int64_t,
                                               std::int64_t, std::int64_t);
template void gemm(const Gemm<float>&, std::span<std::byte>);
template void gemm(const Gemm<double>&, std::span<std::byte>);
template void gemm(const Gemm<BFloat16>&, std::span<std::byte>);
template Bytes parallel_gemm_workspace<float>(std::int64_t, std::int64_t, std::int64_t, int);
template Bytes parallel_gemm_workspace<double>(std::int64_t, std::int64_t, std::int64_t, int);
template Bytes parallel_gemm_workspace<BFloat16>(std::int64_t, std::int64_t, std::int64_t, int);

}  // namespace palimpsest
