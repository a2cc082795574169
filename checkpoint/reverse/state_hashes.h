#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/reverse/stored_object.h"

namespace palimpsest {

/// Hashes of the states of a chain, to find steps that are not reproducible. Of long chains, it has
/// the hashes of states at equal distances.
class StateHashes {
 public:
  /// For at most `entries` states.
  explicit StateHashes(std::size_t entries) : most_(entries) { hashes_.reserve(entries); }

  /// State `number` is current. The first time, notes its hash. Later, throws `ArgumentError`
  /// naming the step that gave another state.
  void check(std::uint64_t number, const StoredObject& state, const Where& where);

  /// To be saved, and loaded.
  std::uint64_t distance() const { return distance_; }
  std::span<const std::uint64_t> hashes() const { return hashes_; }
  void load(std::uint64_t distance, std::span<const std::uint64_t> hashes);

  static constexpr std::size_t most_entries = 1 << 17;

 private:
  std::size_t most_;
  std::uint64_t distance_ = 1;
  std::vector<std::uint64_t> hashes_;  // of states 0, distance, 2·distance …
};

}  // namespace palimpsest
