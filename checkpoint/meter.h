#pragma once

#include <atomic>
#include <memory>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Makes `most` at least `bytes`.
void raise_to(std::atomic<Bytes>& most, Bytes bytes);

/// Counts bytes of buffers. Always on and thread-safe. A handle: copies share their counts.
///
/// *Live* bytes are those of buffers that are held. *Reserved* bytes are address space that may be
/// backed by pages. They bound the growth of the process's resident size, apart from freed memory
/// that is kept for reuse. Values that a run computes in an arena count as reserved from its
/// beginning, and enter the peak of live bytes when it ends.
class Meter {
 public:
  Meter() : counts_(std::make_shared<Counts>()) {}

  /// Fresh storage, counted as live and as reserved until its last holder releases it. Throws
  /// `ArgumentError` for a negative number.
  Buffer allocate(Bytes bytes, const Where& where = Where::current()) const;
  /// Counts existing storage, of at least so many bytes, in the same way. Throws as `allocate`.
  Buffer count(Buffer storage, Bytes bytes, const Where& where = Where::current()) const;
  /// True when `buffer` came from `allocate` or `count`: its bytes are freed when its last holder
  /// releases it.
  bool allocated(const Buffer& buffer) const;

  /// Live and reserved bytes: those held now, and the most held at once since `reset_peaks`.
  Bytes live() const { return counts_->live.now.load(); }
  Bytes peak() const { return counts_->live.peak.load(); }
  Bytes reserved() const { return counts_->reserved.now.load(); }
  Bytes peak_reserved() const { return counts_->reserved.peak.load(); }
  /// Restarts both peaks from the bytes held now.
  void reset_peaks() const;

 private:
  friend class Arena;
  struct Count {
    std::atomic<Bytes> now = 0;
    std::atomic<Bytes> peak = 0;
    void add(Bytes bytes);
    /// Records a temporary increase by so many bytes.
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
