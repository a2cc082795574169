#include "checkpoint/meter.h"

#include <string>

#include "checkpoint/block.h"

namespace palimpsest {

void raise_to(std::atomic<Bytes>& most, Bytes bytes) {
  Bytes seen = most.load();
  while (seen < bytes && !most.compare_exchange_weak(seen, bytes)) {
  }
}

void Meter::Count::add(Bytes bytes) { raise_to(peak, now.fetch_add(bytes) + bytes); }
void Meter::Count::note(Bytes bytes) { raise_to(peak, now.load() + bytes); }

/// Runs when the last holder releases a buffer.
struct Meter::Release {
  std::shared_ptr<Counts> counts;
  Bytes bytes;
  StorageBlock block;  // without data when `held` is the storage
  Buffer held;

  void operator()(std::byte*) {
    if (block.data != nullptr) {
      give_block(block);
    } else {
      held.reset();
    }
    counts->live.add(-bytes);
    counts->reserved.add(-bytes);
  }
};

namespace {

void require_not_negative(Bytes bytes, const Where& where) {
  if (bytes >= 0) return;
  throw ArgumentError(
      "meter", "there is no storage of " + std::to_string(bytes) + " bytes; give 0 or more", where);
}

}  // namespace

// When a buffer cannot be made, its deleter runs and subtracts the bytes again.

Buffer Meter::allocate(Bytes bytes, const Where& where) const {
  require_not_negative(bytes, where);
  const StorageBlock block = take_block(bytes);
  counts_->live.add(bytes);
  counts_->reserved.add(bytes);
  return Buffer(block.data, Release{counts_, bytes, block, nullptr});
}

Buffer Meter::count(Buffer storage, Bytes bytes, const Where& where) const {
  require_not_negative(bytes, where);
  std::byte* const data = storage.get();
  counts_->live.add(bytes);
  counts_->reserved.add(bytes);
  return Buffer(data, Release{counts_, bytes, {}, std::move(storage)});
}

bool Meter::allocated(const Buffer& buffer) const {
  const auto* const release = std::get_deleter<Release>(buffer);
  return release != nullptr && release->counts == counts_;
}

void Meter::reset_peaks() const {
  for (Count* count : {&counts_->live, &counts_->reserved}) count->peak = count->now.load();
}

}  // namespace palimpsest
