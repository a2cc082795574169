#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/data_loader.h"

namespace palimpsest {

/// The order in which an epoch takes the examples: a permutation of [0, size) that depends on the
/// arguments alone.
std::vector<std::int64_t> shuffled_order(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

/// Makes the batches of a loader. One thread at a time calls `make`; the other functions are const.
class BatchMaker {
 public:
  /// Throws `ArgumentError`.
  BatchMaker(Dataset dataset, DataLoaderOptions options);

  std::int64_t batches() const { return batches_; }
  /// Examples of a batch.
  std::int64_t size_of(std::int64_t batch) const;
  /// Bytes of a batch before its transform.
  Bytes untransformed_bytes(std::int64_t batch) const;
  const DataLoaderOptions& options() const { return options_; }

  /// Computes on the calling thread alone, because other threads are busy with training.
  Batch make(const DataLoaderPosition& position);
  DataLoaderPosition after(const DataLoaderPosition& position) const;

 private:
  std::vector<std::int64_t> examples_of(const DataLoaderPosition& position);

  Dataset dataset_;
  DataLoaderOptions options_;
  std::int64_t batches_ = 0;
  struct Order {
    std::uint64_t seed = 0;
    std::int64_t epoch = 0;
    std::vector<std::int64_t> examples;
  };
  std::optional<Order> order_;  // of the epoch of the last batch
};

}  // namespace palimpsest
