#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Tape;

/// Tells a `Var` whether its value is still on its tape.
///
/// An identity outlives its tape. It is never freed, but reused by a later tape, so a process has
/// as many as tapes existed at once. The epoch only grows. It increases when values are removed
/// from the tape and when the tape is destroyed; a handle from an earlier epoch must then check
/// whether its value remains.
class TapeIdentity {
 public:
  /// An identity that no other tape uses.
  static TapeIdentity& take(Tape& tape);
  /// The tape is destroyed.
  void give_back() noexcept;

  /// The tape; null after it was destroyed.
  Tape* tape() const { return tape_.load(std::memory_order_relaxed); }
  /// The current epoch, and the start of the next one.
  std::uint32_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  void move_on() { epoch_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<Tape*> tape_ = nullptr;
  std::atomic<std::uint32_t> epoch_ = 0;
  TapeIdentity* next_unused_ = nullptr;
};

/// Which handles of a tape's values are still valid. Holds an identity while it exists.
class HandleEpochs {
 public:
  explicit HandleEpochs(Tape& tape)
      : identity_(TapeIdentity::take(tape)), first_epoch_(identity_.epoch()) {}
  ~HandleEpochs() { identity_.give_back(); }
  HandleEpochs(const HandleEpochs&) = delete;
  HandleEpochs& operator=(const HandleEpochs&) = delete;

  const TapeIdentity& identity() const { return identity_; }
  /// True when the value existed in an epoch of the identity and was not removed since.
  bool has_kept(std::uint32_t value, std::uint32_t epoch) const;

 private:
  friend class Tape;

  /// Reserves the memory that `note_removed` needs.
  void prepare_for_removal() {
    if (removed_.size() == removed_.capacity()) removed_.reserve(2 * removed_.size() + 1);
  }
  /// Invalidates existing handles of values from `first` on. Does not allocate after
  /// `prepare_for_removal`.
  void note_removed(std::uint32_t first);

  /// Values from `first` on were removed from the tape when its epoch was `epoch`.
  struct Removed {
    std::uint32_t epoch;
    std::uint32_t first;
  };

  TapeIdentity& identity_;
  std::uint32_t first_epoch_;
  std::vector<Removed> removed_;  // in order; each removes fewer values than those before
};

}  // namespace palimpsest
