#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "autodiff/execute.h"
#include "autodiff/kernels/factorize.h"
#include "autodiff/operations/broadcasting.h"
#include "autodiff/operations/matrices.h"

namespace palimpsest {

/// Attributes of an operation that fails for some values: the source line for its error.
struct Blamed {
  Where where;

  bool operator==(const Blamed& other) const { return same_line(where, other.where); }
};

/// Element `index` of a broadcast batch: the index of the matrix in each operand.
template <std::size_t N>
std::array<std::int64_t, N> matrices_at(const Broadcast<N>& batch, std::int64_t index) {
  const std::int64_t place = index % batch.row_length();
  return batch.row(index / batch.row_length(), place, place + 1).offset;
}

/// Scheduling of a batch of n×n factorizations; it depends on the shape only. Large ones run one
/// after the other, each split over the threads. Small ones run in parallel, as do all that cannot
/// be split.
struct FactorBatch {
  std::int64_t count;
  std::int64_t n;
  bool can_split = true;  ///< the factorization uses `Products`

  bool split() const { return count == 1 || (can_split && n >= 512 && count < 8); }
  /// Workspace if each matrix needs `own` bytes plus that of the products that `measure(products)`
  /// makes.
  template <class T, class F>
  Bytes workspace(int threads, Bytes own, F measure) const {
    Products<T> products(split(), threads);
    measure(products);
    return (aligned(own) + aligned(products.workspace_bytes())) * (split() ? 1 : threads);
  }

  /// Calls `f(index, own, products)` for each matrix; f returns the pivot at which it failed, or
  /// −1. Returns the first matrix that failed and its pivot, or −1 for both.
  template <class T, class F>
  std::pair<std::int64_t, std::int64_t> run(const KernelCall& call, Bytes own, F f) const {
    const std::int64_t none_failed = std::numeric_limits<std::int64_t>::max();
    std::atomic<std::int64_t> first = none_failed;
    const auto one = [&](std::int64_t index, std::span<std::byte> space) {
      const auto size = static_cast<std::size_t>(aligned(own));
      Products<T> products(split(), space.subspan(size));
      const std::int64_t pivot = f(index, space.first(size), products);
      if (pivot < 0) return;
      const std::int64_t code = index * n + pivot;
      std::int64_t seen = first;
      while (code < seen && !first.compare_exchange_weak(seen, code)) {
      }
    };
    if (split()) {
      for (std::int64_t index = 0; index < count; ++index) one(index, call.workspace);
    } else {
      const std::size_t share =
          call.workspace.size() / static_cast<std::size_t>(std::max(call.threads, 1)) / 64 * 64;
      const double size = static_cast<double>(n);
      parallel_chunks(count, grain_for(size * size * size / 4),
                      [&](std::int64_t begin, std::int64_t end) {
                        const auto thread = static_cast<std::size_t>(thread_index());
                        const auto space = call.workspace.subspan(thread * share, share);
                        for (std::int64_t index = begin; index < end; ++index) one(index, space);
                      });
    }
    if (first == none_failed) return {-1, -1};
    return {first / n, first % n};
  }
};

/// The batch of matrices in the last two axes of `shape`.
inline FactorBatch batch_for(const Shape& shape, bool can_split = true) {
  return {batch_of(shape).elements(), shape.size(-1), can_split};
}

}  // namespace palimpsest
