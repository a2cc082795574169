#pragma once

#include <atomic>
#include <cstdint>

namespace palimpsest {

class Tape;

/// What a `Var` looks at to learn whether its tape still holds what it names.
///
/// An identity outlives its tape: it is never freed, but serves a later tape, so that the process
/// has as many as there were tapes at once. Its epoch only grows: it moves on whenever values are
/// taken off the tape and when the tape goes, so a handle made earlier is looked into.
class TapeIdentity {
 public:
  /// One that serves no other tape.
  static TapeIdentity& take(Tape& tape);
  /// The tape is gone.
  void give_back() noexcept;

  /// The tape, null when it is gone.
  Tape* tape() const { return tape_.load(std::memory_order_relaxed); }
  std::uint32_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
  void move_on() { epoch_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<Tape*> tape_ = nullptr;
  std::atomic<std::uint32_t> epoch_ = 0;
  TapeIdentity* next_unused_ = nullptr;
};

}  // namespace palimpsest
