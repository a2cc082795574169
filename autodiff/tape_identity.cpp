#include "autodiff/tape_identity.h"

#include <mutex>

namespace palimpsest {
namespace {

/// The identities that no tape uses. This is the only state that tapes share; no computed result
/// depends on it.
struct Unused {
  std::mutex mutex;
  TapeIdentity* first = nullptr;
};

Unused& unused() {
  // Never destroyed, because tapes may be destroyed while the process exits.
  static Unused& all = *new Unused;
  return all;
}

}  // namespace

TapeIdentity& TapeIdentity::take(Tape& tape) {
  Unused& all = unused();
  const std::scoped_lock lock(all.mutex);
  TapeIdentity* identity = all.first;
  if (identity == nullptr) {
    identity = new TapeIdentity;
  } else {
    all.first = identity->next_unused_;
  }
  identity->tape_.store(&tape, std::memory_order_relaxed);
  return *identity;
}

void TapeIdentity::give_back() noexcept {
  tape_.store(nullptr, std::memory_order_relaxed);
  move_on();
  Unused& all = unused();
  const std::scoped_lock lock(all.mutex);
  next_unused_ = all.first;
  all.first = this;
}

}  // namespace palimpsest
