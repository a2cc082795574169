#pragma once

#include <cstdint>

namespace palimpsest {

/// One action of a schedule that reverses a chain of steps 0, 1, … from few snapshots of the states
/// between them. Step k reads state k. At the start, state 0 is the current state. A stored state
/// stays until its step is reversed; then its slot is free. So the restore right before that may
/// move the state instead of copying it. A store overwrites its slot only while a chain of unknown
/// length runs (`OnlineSnapshots`).
struct ChainAction {
  enum class Kind : std::uint8_t {
    store,    ///< copy the current state, state `step`, into `slot`
    restore,  ///< make state `step`, which is in `slot`, the current state
    advance,  ///< run the steps up to `step`, without it: state `step` is then current
    reverse,  ///< run `step` with its tape, and back: no state is then current
  };
  enum class Tier : std::uint8_t { memory, disk };

  Kind kind;
  std::uint32_t step;
  std::uint32_t slot = 0;  ///< of `store` and `restore`, counted from 0 in each tier
  Tier tier = Tier::memory;

  bool operator==(const ChainAction&) const = default;
};

/// Consecutive states in consecutive slots. The first is state `step`, in `slot`. Both numbers rise
/// where a schedule stores the states, and fall where it restores them.
struct ChainRow {
  std::uint32_t step = 0;
  std::uint32_t slot = 0;
  std::uint32_t count = 0;

  bool operator==(const ChainRow&) const = default;
};

}  // namespace palimpsest
