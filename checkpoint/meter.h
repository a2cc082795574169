#pragma once

#include <atomic>
#include <memory>

#include "autodiff/tensor.h"

namespace palimpsest {

/// Makes `most` at least `bytes`.
void raise_to(std::atomic<Bytes>& most, Bytes bytes);

/// Counts bytes of buffers, always on and from any thread. A handle: copies count together.
///
/// *Live* bytes are those of the buffers somebody holds. *Reserved* bytes are the address space
/// that may have pages behind it: they bound what the process's resident size grows by, but for
/// what a `BufferPool` and blocks (see checkpoint/block.h) keep for reuse. What a run computes in
/// an arena is reserved from its beginning on, and enters the peak of live bytes when it ends.
class Meter {
 public:
  Meter() : counts_(std::make_shared<Counts>()) {}

  /// Fresh storage, counted as live and as reserved until its last holder lets go.
  Buffer allocate(Bytes bytes) const;
  /// The same for storage that is there, of so many bytes at least.
  Buffer count(Buffer storage, Bytes bytes) const;
  /// True when `buffer` came from `allocate`: letting go of its last holder frees its bytes.
  bool allocated(const Buffer& buffer) const;

  Bytes live() const { return counts_->live.now.load(); }
  Bytes peak() const { return counts_->live.peak.load(); }
  Bytes reserved() const { return counts_->reserved.now.load(); }
  Bytes peak_reserved() const { return counts_->reserved.peak.load(); }
  /// Starts both peaks anew from what is held now.
  void reset_peaks() const;

 private:
  friend class Arena;
  struct Count {
    std::atomic<Bytes> now = 0;
    std::atomic<Bytes> peak = 0;
    void add(Bytes bytes);
    /// So many more were there for a while.
    void note(Bytes bytes);
  };
  struct Counts {
    Count live;
    Count reserved;
  };
  struct Release;

  std::shared_ptr<Counts> counts_;
};

}  // namespace palimpsest
