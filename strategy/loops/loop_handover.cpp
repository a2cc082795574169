#include "strategy/loops/loop_handover.h"

#include <string>

#include "checkpoint/stores/hash.h"

namespace palimpsest {

void StateHashes::meet(std::uint32_t step, const Addresses& state, const HeldComponents& held) {
  std::uint64_t hash = 0;
  const std::vector<Bytes>& sizes = held.block().sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    hash = hash_bytes({state[i], static_cast<std::size_t>(sizes[i])}, hash);
  }
  if (step > hashes_.size()) return hashes_.push_back(hash);
  if (hashes_[step - 1] == hash) return;
  throw ArgumentError(
      held.loop().body().name(),
      "step " + std::to_string(step - 1) +
          " makes a different state when it is run again from the same one; its body must record "
          "the same operations again, and draw random numbers only with operations",
      held.loop().body().where);
}

}  // namespace palimpsest
