#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "autodiff/bytes.h"
#include "autodiff/parallel.h"

namespace palimpsest {

/// Chunks of [0, n) that run in parallel, each with its own share of a workspace. There are as many
/// shares as chunks that can run at once.
class Shares {
 public:
  Shares(std::int64_t n, std::int64_t grain, Bytes share, int threads)
      : n_(n), grain_(grain), share_(share), chunks_((n + grain - 1) / grain), threads_(threads) {}

  Bytes bytes() const { return share_ * std::min<std::int64_t>(chunks_, threads_); }

  /// Calls f(begin, end, share) for every chunk.
  template <class F>
  void run(std::span<std::byte> workspace, F f) const {
    parallel_chunks(n_, grain_, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t index = chunks_ <= threads_ ? begin / grain_ : thread_index();
      f(begin, end, workspace.data() + index * share_);
    });
  }

 private:
  std::int64_t n_, grain_;
  Bytes share_;
  std::int64_t chunks_;
  int threads_;
};

}  // namespace palimpsest
