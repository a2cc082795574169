#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint/chains/action.h"
#include "checkpoint/reverse/extent_file.h"

namespace palimpsest {

/// A held state, as the journal of a loop knows it.
struct JournaledState {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::uint32_t step = none;  ///< the number of the state
  Extent extent = {};         ///< its copy in the journal's file, if there is one
};

/// The states that a loop with a journal holds, by the tiers and slots of its schedule. States on
/// disk are in the file of the journal. Outlives the parts of the loop.
class HeldTable {
 public:
  using Tier = ChainAction::Tier;

  explicit HeldTable(ExtentFile& file) : file_(file) {}

  ExtentFile& file() { return file_; }
  std::vector<JournaledState>& tier(Tier tier) { return tiers_[tier == Tier::disk ? 1 : 0]; }
  JournaledState& at(Tier tier, std::uint32_t slot) {
    std::vector<JournaledState>& states = this->tier(tier);
    if (slot >= states.size()) states.resize(slot + std::size_t{1});
    return states[slot];
  }
  /// The state in the block that is in use, and which of the two blocks that is.
  JournaledState& block() { return block_; }
  std::size_t in_use = 0;

  /// Replaces what is known of a slot.
  void set(JournaledState& held, JournaledState state) {
    const Extent before = held.extent;
    held = state;
    file_.release(before);
  }
  void drop(JournaledState& held) { set(held, {}); }
  void clear() {
    for (std::vector<JournaledState>& states : tiers_) {
      for (JournaledState& held : states) drop(held);
      states.clear();
    }
    drop(block_);
    in_use = 0;
  }

 private:
  ExtentFile& file_;
  std::vector<JournaledState> tiers_[2];
  JournaledState block_;
};

}  // namespace palimpsest
