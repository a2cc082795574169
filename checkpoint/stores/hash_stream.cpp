#include "checkpoint/stores/hash_stream.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace palimpsest {

struct HashStream::State {
  XXH3_state_t hash;
};

HashStream::HashStream() : state_(std::make_unique<State>()) { reset(); }

HashStream::~HashStream() = default;

void HashStream::reset() { XXH3_128bits_reset(&state_->hash); }

void HashStream::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
}

Hash128 HashStream::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return {hash.low64, hash.high64};
}

}  // namespace palimpsest
