#include "autodiff/tape_identity.h"

#include <algorithm>
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

bool HandleEpochs::has_kept(std::uint32_t value, std::uint32_t epoch) const {
  if (epoch < first_epoch_) return false;  // the handle is of an earlier tape with this identity
  // Later entries remove fewer values, so the first one since `epoch` removes the most.
  const auto since = std::ranges::lower_bound(removed_, epoch, {}, &Removed::epoch);
  return since == removed_.end() || value < since->first;
}

void HandleEpochs::note_removed(std::uint32_t first) {
  while (!removed_.empty() && removed_.back().first >= first) removed_.pop_back();
  removed_.push_back({identity_.epoch(), first});
  identity_.move_on();
}

}  // namespace palimpsest
