#pragma once

#include <map>
#include <span>
#include <vector>

#include "strategy/base/run_observer.h"
#include "strategy/run/executor.h"

namespace palimpsest {

/// Tells an observer of a run, step by step.
class ObservedRun {
 public:
  /// Of a run by `executor` of what `tape` holds, which was asked for `targets`.
  ObservedRun(RunObserver& observer, const Tape& tape, const Executor& executor,
              std::span<const ValueId> targets);
  /// To be called when a step has ended.
  void operator()(std::uint32_t step) const;

 private:
  struct Final {
    std::size_t target;
    Instructions::Place place;
    ValueType type;
  };

  RunObserver& observer_;
  const Executor& executor_;
  std::multimap<std::uint32_t, Final> finals_;  // by step
};

}  // namespace palimpsest
