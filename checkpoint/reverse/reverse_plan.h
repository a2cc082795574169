#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "autodiff/bytes.h"
#include "checkpoint/chains/disk_costs.h"
#include "checkpoint/reverse/reverse.h"
#include "checkpoint/reverse/reverse_position.h"
#include "checkpoint/reverse/snapshot_codec.h"

namespace palimpsest {

/// What a run keeps, within its budget.
struct ReversePlan {
  std::optional<std::uint64_t> steps;
  std::uint64_t segment = 1;    ///< steps per unit of the schedule
  bool by_bytes = false;        ///< keeps states of any sizes; otherwise `snapshots` of one size
  bool encodes_memory = false;  ///< states in memory too
  std::uint32_t snapshots = 0;  ///< states in memory at a time
  Bytes slot_bytes = 0;         ///< of each
  Bytes entry_bytes = 0;        ///< of each in addition
  Bytes largest_state = 0;
  Bytes fixed_bytes = 0;   ///< of tables, codecs and other things that the meter does not count
  Bytes buffer_bytes = 0;  ///< of buffers, in addition
  Bytes room = 0;          ///< what is left for states
  std::size_t hashes = 0;  ///< entries of the table of hashes, at most
  std::vector<Bytes> accumulated = {};       ///< of each object, before the first step
  std::optional<DiskCosts> costs = {};       ///< of the disk, in units; only if it is used
  std::optional<DiskCosts> step_costs = {};  ///< likewise, in steps, as they were given or measured

  std::optional<std::uint64_t> units() const {
    if (!steps) return {};
    return (*steps + segment - 1) / segment;
  }
  /// Bytes that the run takes at most.
  Bytes bytes(Bytes tape_bytes_per_step) const;
};

/// The plan for a chain whose first state is current. `costs` returns the costs of the disk, in
/// steps. It is called after all errors, unless all states are known to fit in memory:
/// `BudgetError`, and `ArgumentError` for more steps than can be counted. The smallest feasible
/// budget does not depend on the costs. `accumulated` are the bytes of the accumulated objects
/// before the first step.
ReversePlan plan_reversal(const ReverseOptions& options, ReverseChain& chain,
                          const SnapshotCodec* codec, std::vector<Bytes> accumulated,
                          const std::function<DiskCosts()>& costs, const Where& where);

/// The position before the first step. It has what the rest of a run must have in common with its
/// beginning.
JournalPosition position_before(const ReversePlan& plan);

}  // namespace palimpsest
