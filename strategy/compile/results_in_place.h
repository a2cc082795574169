#pragma once

#include <vector>

#include "checkpoint/schedule.h"
#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// Finds results by which a run may replace donated arguments, in place and after all other reads
/// of them. Valid for one schedule. Refers to its arguments.
class ResultsInPlace {
 public:
  ResultsInPlace(const Tape& tape, const Lowered& lowered, const Schedule& schedule);

  /// How a result replaces a source of the graph.
  struct Replacement {
    /// Any of these, which were donated to the result; empty if the run cannot replace one.
    std::vector<ValueId> sources;
    /// Values that lie in the buffer of the result until it is made, from the last to the first.
    /// Each replaces the one before it. The first, or else the result, replaces the source.
    std::vector<ValueId> before;
  };
  Replacement find(ValueId result) const;

 private:
  ValueId replaced_value(ValueId value) const;
  std::vector<ValueId> replaced_sources(ValueId value, ValueId result) const;
  bool replaces_in_place(ValueId value, std::size_t input) const;
  bool is_last_reader(NodeId unit, ValueId source) const;

  const Tape& tape_;
  const Lowered& lowered_;
  const Graph& graph_;
  std::vector<std::uint32_t> runs_;           // by unit
  std::vector<std::vector<NodeId>> readers_;  // by root; a unit that reads it twice occurs twice
  std::vector<bool> wanted_;                  // by root: holds a target
};

}  // namespace palimpsest
