#include "checkpoint/reverse/state_hashes.h"

#include <string>

#include "checkpoint/stores/hash.h"

namespace palimpsest {

void StateHashes::check(std::uint64_t number, const StoredObject& state, const Where& where) {
  if (number % distance_ != 0) return;
  if (number / distance_ == most_) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < hashes_.size(); i += 2) hashes_[kept++] = hashes_[i];
    hashes_.resize(kept);
    distance_ *= 2;
    if (number % distance_ != 0) return;
  }
  std::uint64_t hash = 0;
  state.save([&](std::span<const std::byte> piece) { hash = hash_bytes(piece, hash); });
  const auto place = static_cast<std::size_t>(number / distance_);
  if (place == hashes_.size()) hashes_.push_back(hash);
  if (hashes_[place] == hash) return;
  const std::string last = "step " + std::to_string(number - 1);
  const std::string which = distance_ == 1 || number == 0
                                ? last
                                : "one of the steps " + std::to_string(number - distance_) +
                                      " to " + std::to_string(number - 1);
  throw ArgumentError("reverse",
                      which +
                          " made another state than when it ran first; make steps depend on "
                          "nothing but the state and the number of the step",
                      where);
}

void StateHashes::load(std::uint64_t distance, std::span<const std::uint64_t> hashes) {
  distance_ = distance;
  hashes_.assign(hashes.begin(), hashes.end());
}

}  // namespace palimpsest
