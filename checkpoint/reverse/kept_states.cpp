#include "checkpoint/reverse/kept_states.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

/// Small slots are allocated together, because an allocation takes longer than a short step.
constexpr Bytes slab_bytes = 64 << 10;

/// Blocks of at least this size are mapped by the system in whole pages.
constexpr Bytes page = 4096;

std::span<std::byte> memory_in(const Buffer& buffer, Bytes bytes) {
  return {buffer.get(), static_cast<std::size_t>(bytes)};
}

void save_into(const StoredObject& object, std::span<std::byte> memory) {
  std::byte* next = memory.data();
  object.save([&](std::span<const std::byte> piece) {
    std::ranges::copy(piece, next);
    next += piece.size();
  });
}

void load_from(std::span<const std::byte> memory, StoredObject& object) {
  const std::byte* next = memory.data();
  object.load(std::ssize(memory), [&](std::span<std::byte> piece) {
    std::copy_n(next, piece.size(), piece.data());
    next += piece.size();
  });
}

}  // namespace

Bytes KeptStates::memory_of(Bytes bytes) {
  const Bytes unit = bytes < 16 * page ? Bytes{buffer_alignment} : page;
  return (bytes + unit - 1) / unit * unit;
}

KeptStates::KeptStates(StoredObject& state, const Settings& settings, Meter meter)
    : state_(state),
      settings_(settings),
      header_bytes_(state.header_bytes()),
      meter_(std::move(meter)) {
  if (settings_.codec == nullptr) return;
  plain_ = meter_.allocate(settings_.largest_state);
  encoded_ = meter_.allocate(settings_.codec->most(settings_.largest_state));
}

KeptStates::~KeptStates() {
  for (auto& tier : tiers_) {
    for (KeptState& kept : tier) drop(kept);
  }
}

void KeptStates::require_size(std::uint64_t step) const {
  const bool is_limited = settings_.slot_bytes > 0 || settings_.codec != nullptr;
  const Bytes bytes = is_limited ? state_.bytes() : 0;
  if (bytes <= settings_.largest_state) return;
  throw ArgumentError("reverse",
                      "the state before step " + std::to_string(step) + " has " +
                          std::to_string(bytes) + " bytes, more than the " +
                          std::to_string(settings_.largest_state) +
                          " that were planned for; set ReverseOptions::largest_state, or "
                          "sizes_change",
                      settings_.where);
}

std::span<const std::byte> KeptStates::encoded() {
  if (!is_exact() && state_.header_bytes() != header_bytes_) {
    throw ArgumentError("reverse",
                        "a state consists of another number of ranges than state 0, which a lossy "
                        "codec cannot keep; use ReverseCodec::none or zstd",
                        settings_.where);
  }
  const auto plain = memory_in(plain_, state_.bytes());
  save_into(state_, plain);
  const auto room = memory_in(encoded_, settings_.codec->most(settings_.largest_state));
  return room.first(static_cast<std::size_t>(settings_.codec->encode(plain, room)));
}

Extent KeptStates::write_state(std::uint64_t step, bool encodes) {
  const std::string what = "the state before step " + std::to_string(step);
  if (!encodes) {
    return settings_.file->write(
        state_.bytes(), [&](const StoredObject::Sink& sink) { state_.save(sink); }, what);
  }
  const std::span<const std::byte> bytes = encoded();
  return settings_.file->write(
      std::ssize(bytes), [&](const StoredObject::Sink& sink) { sink(bytes); }, what);
}

Buffer KeptStates::take_memory(std::size_t slot, Bytes bytes) {
  if (settings_.slot_bytes == 0) return meter_.allocate(bytes);
  const Bytes each = memory_of(settings_.slot_bytes);
  const auto count = static_cast<std::size_t>(std::max<Bytes>(slab_bytes / each, 1));
  if (slot / count >= slabs_.size()) slabs_.resize(slot / count + 1);
  Buffer& slab = slabs_[slot / count];
  if (slab == nullptr) {
    const std::size_t left = settings_.slots - slot / count * count;
    slab = meter_.allocate(static_cast<Bytes>(std::min(count, left)) * each);
  }
  return {slab, slab.get() + static_cast<Bytes>(slot % count) * each};
}

void KeptStates::save_to_memory(KeptState& kept) {
  kept.is_encoded = settings_.codec != nullptr && settings_.encodes_memory;
  const std::span<const std::byte> bytes = kept.is_encoded ? encoded() : std::span<std::byte>();
  kept.bytes = kept.is_encoded ? std::ssize(bytes) : state_.bytes();
  kept.is_kept = true;
  const Bytes room = settings_.slot_bytes > 0 ? settings_.slot_bytes : kept.bytes;
  if (kept.memory == nullptr || kept.room != room) {
    const auto slot = static_cast<std::size_t>(&kept - tier(Tier::memory).data());
    kept.memory = nullptr;
    kept.memory = take_memory(slot, room);
    kept.room = room;
  }
  if (kept.is_encoded) {
    std::ranges::copy(bytes, kept.memory.get());
  } else {
    save_into(state_, memory_in(kept.memory, kept.bytes));
  }
}

void KeptStates::store(Tier where, std::uint32_t slot, std::uint64_t step) {
  require_size(step);
  std::vector<KeptState>& kept = tier(where);
  if (slot >= kept.size()) kept.resize(slot + std::size_t{1});
  KeptState& place = kept[slot];
  if (settings_.file != nullptr) settings_.file->release(std::exchange(place.extent, {}));
  place.step = step;
  if (where == Tier::memory) return save_to_memory(place);
  place.is_encoded = settings_.codec != nullptr;
  place.is_kept = false;
  place.extent = write_state(step, place.is_encoded);
  place.bytes = place.extent.bytes;
  place.is_kept = true;
  ++disk_writes_;
}

bool KeptStates::load(const KeptState& kept) {
  if (kept.memory == nullptr) {
    ++disk_reads_;
    if (!kept.is_encoded) {
      // Damaged bytes must not reach functions that interpret them.
      const bool is_memory = state_.header_bytes() == 0 && state_.workspace() == 0;
      if (!is_memory && !settings_.file->is_intact(kept.extent)) return false;
      return settings_.file->read(kept.extent, [&](const StoredObject::Source& source) {
        state_.load(kept.extent.bytes, source);
      });
    }
    const bool is_intact =
        settings_.file->read(kept.extent, [&](const StoredObject::Source& source) {
          source(memory_in(encoded_, kept.extent.bytes));
        });
    if (!is_intact) return false;
  }
  const std::span<const std::byte> bytes = kept.memory != nullptr
                                               ? memory_in(kept.memory, kept.bytes)
                                               : memory_in(encoded_, kept.extent.bytes);
  if (!kept.is_encoded) {
    load_from(bytes, state_);
    return true;
  }
  const auto plain = memory_in(plain_, settings_.codec->decoded_bytes(bytes));
  internal_check(settings_.codec->decode(bytes, plain), "a kept state cannot be decoded");
  load_from(plain, state_);
  return true;
}

bool KeptStates::matches(const KeptState& kept) {
  HashStream hash;
  if (kept.is_encoded) {
    hash.add(encoded());
  } else {
    state_.save([&](std::span<const std::byte> piece) { hash.add(piece); });
  }
  return hash.digest() == kept.extent.hash;
}

void KeptStates::replace(KeptState& kept, Tier where) {
  settings_.file->release(std::exchange(kept.extent, {}));
  if (where == Tier::memory) {
    save_to_memory(kept);
    held_bytes_ += kept.charged;
  } else {
    kept.extent = write_state(kept.step, kept.is_encoded);
  }
}

Bytes KeptStates::prepare(std::uint64_t step) {
  require_size(step);
  prepared_ = settings_.encodes_memory ? std::ssize(encoded()) : state_.bytes();
  return memory_of(prepared_);
}

void KeptStates::push(std::uint64_t step, Bytes charged) {
  KeptState& kept = tier(Tier::memory).emplace_back();
  kept.is_kept = true;
  kept.step = step;
  kept.bytes = kept.room = prepared_;
  kept.is_encoded = settings_.encodes_memory;
  kept.memory = meter_.allocate(prepared_);
  if (kept.is_encoded) {
    std::memcpy(kept.memory.get(), encoded_.get(), static_cast<std::size_t>(prepared_));
  } else {
    save_into(state_, memory_in(kept.memory, prepared_));
  }
  kept.charged = charged;
  held_bytes_ += charged;
}

void KeptStates::drop(KeptState& kept) {
  if (settings_.file != nullptr) settings_.file->release(kept.extent);
  if (kept.memory != nullptr) held_bytes_ -= kept.charged;
  kept = {};
}

void KeptStates::write(KeptState& kept) {
  if (kept.memory == nullptr || kept.extent) return;
  kept.extent = settings_.file->write(
      kept.bytes, [&](const StoredObject::Sink& sink) { sink(memory_in(kept.memory, kept.bytes)); },
      "the state before step " + std::to_string(kept.step));
}

bool KeptStates::read(KeptState& kept) {
  const Bytes room = settings_.slot_bytes > 0 ? settings_.slot_bytes : kept.bytes;
  kept.memory = take_memory(static_cast<std::size_t>(&kept - tier(Tier::memory).data()), room);
  kept.room = room;
  const bool is_intact = settings_.file->read(kept.extent, [&](const StoredObject::Source& source) {
    source(memory_in(kept.memory, kept.bytes));
  });
  if (!is_intact) {
    kept.memory = nullptr;
    return false;
  }
  held_bytes_ += kept.charged;
  return true;
}

}  // namespace palimpsest
