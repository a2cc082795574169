#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "strategy/base/report.h"
#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// Collects what an engine computes for a tape while it is recorded, from `begin` to the next
/// `take`. This includes counts, times and steps, the nodes computed, and the share of recomputed
/// work.
class CollectedRuns {
 public:
  void begin();
  /// False before `begin` and after `take`; `add` and `note_run` then do nothing.
  bool has_begun() const { return runs_.has_value(); }
  /// Returns what was collected and ends the collection. Its `compute_overhead` is the recomputed
  /// work divided by the work done for the first time. It includes runs that were only noted.
  Report take();

  /// Adds a run.
  void add(const Report& run);
  /// Notes that a node of the tape is computed, which takes `seconds` on the modelled machine.
  /// Returns true if the node was computed before. Ignores nodes of a function being traced, since
  /// they are removed from the tape again.
  bool note(const Tape& tape, NodeId node, double seconds);
  /// Marks and counts in `report` the steps that recompute nodes of earlier runs. Nodes from
  /// `backward_begins` on never count, since they are removed from the tape again.
  void note_run(Report& report, const Tape& tape, const Lowered& lowered, const Plan& plan,
                NodeId backward_begins);

 private:
  bool mark(NodeId node);

  std::optional<Report> runs_;
  std::vector<bool> computed_;  // nodes of the tape
  double seconds_ = 0;          // all work noted
  double seconds_again_ = 0;    // the part spent on nodes computed before
};

}  // namespace palimpsest
