#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "checkpoint/chains/action.h"
#include "checkpoint/chains/disk_costs.h"

namespace palimpsest {

/// A schedule of a chain whose length is known, or becomes known when it ends. Its steps are units
/// of one or several steps of the program.
class ChainSchedule {
 public:
  virtual ~ChainSchedule() = default;
  /// The stores to carry out before the next unit, while the length is unknown.
  virtual std::span<const ChainAction> before_step() { return {}; }
  /// The chain has ended.
  virtual void end_sweep() {}
  /// The next action of the reversal or, if the length is known, of all.
  virtual std::optional<ChainAction> next() = 0;

  /// Forward units of the reversal or, if the length is known, of all; including those with a tape.
  /// Known after the sweep.
  virtual std::uint64_t forward_units() const = 0;
  virtual std::uint64_t writes() const { return 0; }
  virtual std::uint64_t reads() const { return 0; }
};

/// For `units` units, if they are known. With costs of the disk, states go to memory and to disk.
///
/// If the number of units is known, the schedule has one unit more. Its reversal makes the adjoint
/// of the last state.
std::unique_ptr<ChainSchedule> make_chain_schedule(std::optional<std::uint64_t> units,
                                                   std::uint32_t snapshots,
                                                   const std::optional<DiskCosts>& costs);

}  // namespace palimpsest
