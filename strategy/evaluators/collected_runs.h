#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "strategy/base/report.h"
#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// What an engine computed for a tape while it was being recorded, from one `begin` to the next
/// `take`: counts, times and steps, which nodes it was, and what share of the work was done again.
class CollectedRuns {
 public:
  void begin();
  /// Nothing is noted where it did not begin.
  bool has_begun() const { return runs_.has_value(); }
  /// What was collected, which ends it. Its `compute_overhead` is the work of nodes that were
  /// computed before, over that of nodes that were not, also of the runs that were only noted.
  Report take();

  /// Adds a run.
  void add(const Report& run);
  /// Notes that a node of the tape is computed, in so many seconds by the machine; returns whether
  /// it was before. Not of a function that is traced, whose nodes are taken off the tape again.
  bool note(const Tape& tape, NodeId node, double seconds);
  /// Has the report of a run say what it computed again that runs before it computed; of nodes from
  /// `backward_begins` on, which are taken off the tape again, nothing.
  void note_run(Report& report, const Tape& tape, const Lowered& lowered, const Plan& plan,
                NodeId backward_begins);

 private:
  bool mark(NodeId node);

  std::optional<Report> runs_;
  std::vector<bool> computed_;  // nodes of the tape
  double seconds_ = 0;          // of all work noted
  double seconds_again_ = 0;    // of that, on nodes computed before
};

}  // namespace palimpsest
