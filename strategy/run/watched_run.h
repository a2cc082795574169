#pragma once

#include <map>
#include <span>
#include <vector>

#include "strategy/base/run_watch.h"
#include "strategy/run/executor.h"

namespace palimpsest {

/// Tells a watch of a run, step by step.
class WatchedRun {
 public:
  /// Of a run by `executor` of what `tape` holds, which was asked for `targets`.
  WatchedRun(RunWatch& watch, const Tape& tape, const Executor& executor,
             std::span<const ValueId> targets);
  /// To be called when a step has ended.
  void operator()(std::uint32_t step) const;

 private:
  struct Final {
    std::size_t target;
    Instructions::Place place;
    ValueType type;
  };

  RunWatch& watch_;
  const Executor& executor_;
  std::multimap<std::uint32_t, Final> finals_;  // by step
};

}  // namespace palimpsest
