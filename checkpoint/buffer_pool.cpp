#include "checkpoint/buffer_pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "checkpoint/block.h"

namespace palimpsest {

struct BufferPool::State {
  std::mutex mutex;
  std::map<Bytes, std::vector<Buffer>> kept;  // by size
  Bytes kept_bytes = 0;
  Bytes handed_out = 0;  // in this run, and still held
  Bytes outside = 0;
  Bytes most = 0;
  Bytes peak = 0;
  std::uint64_t allocations = 0;
  std::uint32_t run = 0;
  bool is_open = true;

  Bytes held() const { return kept_bytes + handed_out + outside; }

  /// Releases kept buffers while there is no room for so many bytes more.
  void make_room(Bytes bytes) {
    while (!kept.empty() && held() + bytes > most) {
      const auto largest = std::prev(kept.end());
      kept_bytes -= largest->first;
      largest->second.pop_back();
      if (largest->second.empty()) kept.erase(largest);
    }
  }
};

/// Runs when the last holder releases a buffer.
struct BufferPool::Return {
  std::shared_ptr<State> state;
  Bytes bytes;
  std::uint32_t run;
  Buffer storage;

  void operator()(std::byte*) {
    const std::lock_guard lock(state->mutex);
    if (run == state->run) state->handed_out -= bytes;
    if (!state->is_open || state->held() + bytes > state->most) return storage.reset();
    try {
      state->kept[bytes].push_back(std::move(storage));
      state->kept_bytes += bytes;
    } catch (const std::bad_alloc&) {
      storage.reset();  // no memory to record it
      const auto empty = state->kept.find(bytes);
      if (empty != state->kept.end() && empty->second.empty()) state->kept.erase(empty);
    }
  }
};

BufferPool::BufferPool(Meter meter) : meter_(std::move(meter)), state_(std::make_shared<State>()) {}

BufferPool::~BufferPool() {
  const std::lock_guard lock(state_->mutex);
  state_->is_open = false;
  state_->kept.clear();
}

void BufferPool::begin(Bytes most, Bytes outside) {
  const std::lock_guard lock(state_->mutex);
  ++state_->run;
  state_->handed_out = 0;
  state_->outside = outside;
  state_->most = most;
  state_->make_room(0);
  state_->peak = state_->held();
  state_->allocations = 0;
}

void BufferPool::release_outside(Bytes bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->outside -= bytes;
}

Buffer BufferPool::allocate(Bytes bytes) {
  constexpr Bytes unit = buffer_alignment;
  const Bytes size = (bytes + unit - 1) / unit * unit;
  Buffer storage;
  std::uint32_t run = 0;
  {
    const std::lock_guard lock(state_->mutex);
    run = state_->run;
    if (const auto found = state_->kept.find(size); found != state_->kept.end()) {
      storage = std::move(found->second.back());
      found->second.pop_back();
      if (found->second.empty()) state_->kept.erase(found);
      state_->kept_bytes -= size;
    } else {
      state_->make_room(size);
      storage = block_buffer(size);
      ++state_->allocations;
    }
    state_->handed_out += size;
    state_->peak = std::max(state_->peak, state_->held());
  }
  std::byte* const data = storage.get();
  // If this throws, it calls the deleter.
  return meter_.count(Buffer(data, Return{state_, size, run, std::move(storage)}), bytes);
}

Bytes BufferPool::kept() const {
  const std::lock_guard lock(state_->mutex);
  return state_->kept_bytes;
}

Bytes BufferPool::peak() const {
  const std::lock_guard lock(state_->mutex);
  return state_->peak;
}

std::uint64_t BufferPool::allocations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->allocations;
}

}  // namespace palimpsest
