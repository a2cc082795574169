#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "autodiff/bytes.h"
#include "autodiff/export.h"
#include "data/batch.h"
#include "data/dataset.h"

namespace palimpsest PALIMPSEST_EXPORT {

struct DataLoaderOptions {
  /// Examples of a batch, positive. The last batch of an epoch may be smaller.
  std::int64_t batch_size = 1;
  /// Draws a new order of the examples for each epoch. Otherwise they keep that of the dataset.
  bool shuffle = false;
  std::uint64_t seed = 0;  ///< of the orders
  /// Leaves out the last batch of an epoch if it is smaller than the others.
  bool drop_last = false;
  /// Most bytes of batches that are finished before they are asked for; they are at most 64
  /// batches. With 0, the caller makes each batch, and there is no other thread.
  Bytes prefetch = 64_MiB;
  /// Changes each batch, on the thread that makes it. Kernels called directly use that thread
  /// alone; for a tape, set `RunOptions::threads` to 1. It may replace the tensors. The result must
  /// depend on the batch alone: after `set_position`, and if a batch turns out not to fit in
  /// `prefetch`, it is made again.
  std::function<void(Batch& batch)> transform = {};
};

/// A place in the sequence of batches. Save it to continue training later: a loader with the same
/// dataset and options then makes the same batches in the same order.
struct DataLoaderPosition {
  std::int64_t epoch = 0;  ///< in [0, 2³²)
  std::int64_t batch = 0;  ///< the next one of the epoch; the number of batches at its end
  std::uint64_t seed = 0;

  bool operator==(const DataLoaderPosition&) const = default;
};

/// Makes batches of a dataset, epoch after epoch. Another thread makes the next ones meanwhile.
///
///     DataLoader loader(dataset, {.batch_size = 32, .shuffle = true});
///     while (loader.epoch() < 10) {
///       for (const Batch& batch : loader) step(batch["images"], batch["labels"]);
///     }
///
/// Orders come from the seed and the epoch alone, and are the same on every machine. A shuffled
/// loader takes 8 bytes for each example. It must be used by one thread at a time. The destructor
/// waits for the batch that is being made.
class DataLoader {
 public:
  /// Throws `ArgumentError` for an option out of range, and for a dataset that makes no batch.
  explicit DataLoader(Dataset dataset, DataLoaderOptions options = {});
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;

  /// Batches of an epoch.
  std::int64_t batches() const;
  /// Epochs that have ended.
  std::int64_t epoch() const { return position().epoch; }

  /// The next batch of the epoch, or nothing at its end. Then the next epoch begins. Throws what
  /// the dataset or the transform threw for this batch. The position stays there, and the next call
  /// makes the batch again.
  std::optional<Batch> next();

  class Iterator;
  /// Iterates over the batches that are left of the epoch. A loop that is left early continues with
  /// the batch after the last one it got.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  /// The place of the batch that `next` returns next.
  DataLoaderPosition position() const;
  /// Continues from a saved place. Throws `ArgumentError` if there is no such batch.
  void set_position(const DataLoaderPosition& position);

  /// Most bytes that batches took so far, which were finished and not asked for.
  Bytes prefetched_peak() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// An input iterator over the batches of an epoch.
class DataLoader::Iterator {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the names are the standard library's.
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  // NOLINTEND(readability-identifier-naming)

  explicit Iterator(DataLoader& loader) : loader_(&loader), batch_(loader.next()) {}

  const Batch& operator*() const { return *batch_; }
  const Batch* operator->() const { return &*batch_; }
  Iterator& operator++() {
    batch_.reset();  // frees its memory before the next batch comes
    batch_ = loader_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return !batch_.has_value(); }

 private:
  DataLoader* loader_;
  std::optional<Batch> batch_;
};

inline DataLoader::Iterator DataLoader::begin() { return Iterator(*this); }

}  // namespace palimpsest
