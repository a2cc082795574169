#pragma once

#include <span>
#include <vector>

#include "autodiff/tape.h"
#include "checkpoint/machine.h"
#include "strategy/base/options.h"
#include "strategy/compile/fusion/donation.h"

namespace palimpsest {

class Profile;

/// The targets to compile on a tape, and the machine to compile for. Budget, planner and permitted
/// rewrites are in `RunOptions`.
struct ProgramSpec {
  std::span<const ValueId> targets;
  NodeId backward_begins;             ///< the first node of the backward part
  std::span<const NodeId> held = {};  ///< nodes whose present values belong to the user
  int threads = 1;
  Machine machine = {};
  const Profile* costs = nullptr;  ///< measured times that replace estimates; may be null
  /// Targets with storage of their own are written to buffers that the caller of a run provides
  /// (see `Lowered::place_results_elsewhere`).
  bool results_in_buffers = false;
  std::span<const Donation> donations = {};
  bool afresh = false;  ///< present values are treated as absent
};

/// The machine and the number of threads of `options`.
inline ProgramSpec spec_for(std::span<const ValueId> targets, NodeId backward_begins,
                            const RunOptions& options, std::span<const NodeId> held = {}) {
  return {targets,         backward_begins,    held, checked_threads(options.threads),
          options.machine, options.costs.get()};
}

/// The leaves and results of a program that runs on buffers.
struct BufferInterface {
  std::vector<ValueId> arguments;  ///< leaves
  std::vector<ValueId> results;    ///< may repeat, and may be arguments
  NodeId backward_begins;
  std::vector<Donation> donations = {};

  bool operator==(const BufferInterface&) const = default;
};

}  // namespace palimpsest
