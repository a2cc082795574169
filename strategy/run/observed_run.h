#pragma once

#include <map>
#include <span>
#include <vector>

#include "strategy/base/run_observer.h"
#include "strategy/run/executor.h"

namespace palimpsest {

/// Reports the steps of a run and its finished targets to an observer.
class ObservedRun {
 public:
  /// For a run by `executor` that computes `targets` of `tape`.
  ObservedRun(RunObserver& observer, const Tape& tape, const Executor& executor,
              std::span<const ValueId> targets);
  /// Call this after each step.
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
