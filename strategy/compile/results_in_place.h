#pragma once

#include <vector>

#include "checkpoint/schedule.h"
#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// How a run makes results in place, in the buffers that its caller provides. Valid for one
/// schedule. Refers to its arguments.
class ResultsInPlace {
 public:
  ResultsInPlace(const Tape& tape, const Lowered& lowered, const Schedule& schedule);

  /// The value that lies in the buffer of `value`, a result or an earlier value there, until
  /// `value` replaces it; `none` if there is none. Only programs with donated arguments have such
  /// values, so that a result can replace an argument that an earlier value replaces.
  ValueId before(ValueId value) const;
  /// The sources of the graph over which the caller may let the run write a result. The first value
  /// in its buffer replaces such a source in place, after all other reads. Two results must not be
  /// written over the same source.
  std::vector<ValueId> sources_under(ValueId result) const;

 private:
  std::vector<ValueId> replaced_by(ValueId value) const;
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
