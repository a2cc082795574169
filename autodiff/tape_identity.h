#pragma once

#include <atomic>
#include <cstdint>

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
  std::uint32_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  void move_on() { epoch_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<Tape*> tape_ = nullptr;
  std::atomic<std::uint32_t> epoch_ = 0;
  TapeIdentity* next_unused_ = nullptr;
};

}  // namespace palimpsest
