#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>

#include "autodiff/bytes.h"
#include "data/batch_maker.h"

namespace palimpsest {

/// Makes batches in order before they are taken, as many as fit into the loader's `prefetch`. It
/// has a thread of its own: reading rows waits for the disk, which a TBB thread should not.
class Prefetcher {
 public:
  /// `maker` is used by the thread from the first `take` on.
  explicit Prefetcher(BatchMaker& maker) : maker_(maker) {}
  /// Waits for the batch that is being made.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The batch at `position`, which is the place after the last one unless `restart` was called.
  /// Rethrows what making it threw; then the next call for it makes it again.
  Batch take(const DataLoaderPosition& position);
  /// Drops all batches. The next `take` may be for any position.
  void restart();
  /// Throws the `TapeError` that `function` was called by a dataset or transform, which would wait
  /// for itself.
  void require_other_thread(std::string_view function) const;
  /// Most bytes that finished batches took at once.
  Bytes peak() const;

 private:
  struct Finished {
    Batch batch;
    Bytes bytes = 0;
    std::exception_ptr failure;
  };

  void run();
  bool may_make() const;
  Finished make(const DataLoaderPosition& position);
  void keep(Finished finished);
  Bytes expected_bytes(std::int64_t batch) const;

  BatchMaker& maker_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Finished> finished_;
  Bytes held_ = 0;  // by `finished_`
  Bytes peak_ = 0;
  bool is_started_ = false;  // `next_` is known
  DataLoaderPosition next_;  // the one to make next
  std::uint64_t round_ = 0;  // counts restarts
  bool is_awaited_ = false;  // by `take`
  bool is_paused_ = false;   // after a failure, until `take` asks for the batch again
  bool stops_ = false;
  // The batch with the most bytes per example; a transform can change them.
  Bytes largest_bytes_ = 0;
  std::int64_t largest_examples_ = 0;
  std::thread thread_;
};

}  // namespace palimpsest
