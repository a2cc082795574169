#pragma once

#include <cstdint>

namespace palimpsest {

/// One action of a schedule that reverses a chain of steps 0, 1, … from few snapshots of the states
/// between them. State k is what step k reads; at the start state 0 is at hand. What is stored
/// stays until its step is reversed: then its slot is free, so that the restore right before that
/// may move instead of copying. Only while a chain of unknown length runs does a store give up what
/// its slot holds (`OnlineSnapshots`).
struct ChainAction {
  enum class Kind : std::uint8_t {
    store,    ///< copy the state at hand, state `step`, into `slot`
    restore,  ///< make state `step`, which is in `slot`, the state at hand
    advance,  ///< run the steps from the state at hand to before `step`: state `step` is at hand
    reverse,  ///< run `step` from the state at hand with its tape, and back; none is at hand
  };
  enum class Tier : std::uint8_t { memory, disk };

  Kind kind;
  std::uint32_t step;
  std::uint32_t slot = 0;  ///< of `store` and `restore`, counted from 0 in each tier
  Tier tier = Tier::memory;

  bool operator==(const ChainAction&) const = default;
};

}  // namespace palimpsest
