#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// Exponents that weigh the parts of the score.
struct EvictionWeights {
  double bytes = 1;
  double distance = 1;
  double missing = 1;  ///< a factor on the seconds of missing values
};

/// Offline greedy eviction. It walks the needed nodes in order. Whenever the next one does not fit
/// a level of bytes, it drops the storage with the least
///
///     (seconds to recompute it, including what is missing) / (bytes × seconds until its next use)
///
/// among those that no running step holds. Missing values are recomputed when they are read. The
/// score is DTR's (Kirisame et al., 2021) with the known next use instead of the time since the
/// last one (Belady, 1966). One object serves many levels of one graph.
class Eviction {
 public:
  explicit Eviction(const Graph& graph);
  ~Eviction();

  /// The largest working set of a needed node, and the most bytes live when nothing is recomputed.
  /// Each storage counts as a layout rounds it. Levels below the first cannot be reached.
  Bytes lowest_level() const { return lowest_; }
  Bytes highest_level() const { return highest_; }

  /// An order of computing that tries to stay within `level` bytes. It overshoots where it must, so
  /// the result is valid at any level. Returns nothing when it would run more than `most_steps`
  /// nodes.
  std::optional<std::vector<NodeId>> run(Bytes level, std::size_t most_steps,
                                         EvictionWeights weights = {}) const;

 private:
  struct Program;
  class Run;
  std::unique_ptr<const Program> program_;
  Bytes lowest_ = 0;
  Bytes highest_ = 0;
};

}  // namespace palimpsest
