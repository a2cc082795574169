#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// How much each part of the score weighs: its exponent.
struct EvictionWeights {
  double bytes = 1;
  double distance = 1;
  double missing = 1;  ///< a factor on the seconds of what is missing
};

/// Offline greedy eviction: walks the needed nodes in order and, whenever the next one does not fit
/// a level of bytes, gives up the storage with the least
///
///     (seconds to make it again, with what is missing for that) / (bytes × seconds until its next
///     use)
///
/// among those no running step holds; what is missing is made again when it is read. The score is
/// DTR's (Kirisame et al., 2021) with the known next use in place of the time since the last one
/// (Belady, 1966). One object serves many levels of one graph.
class Eviction {
 public:
  explicit Eviction(const Graph& graph);
  ~Eviction();

  /// Largest working set of a needed node, and the most bytes live when nothing is recomputed; each
  /// storage counts as a layout rounds it. Levels below the first cannot be kept.
  Bytes lowest_level() const { return lowest_; }
  Bytes highest_level() const { return highest_; }

  /// An order of computing that tries to stay within `level` bytes. What cannot fit overshoots: the
  /// result is valid at any level. Nothing when it would run more than `most_steps` nodes.
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
