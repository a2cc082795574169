#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// A mode and a memory handling, for a tape and its `backward` within a budget.
struct Way {
  std::string name;
  std::function<std::shared_ptr<EngineEvaluator>(Bytes budget)> evaluator;
  AllocationPolicy memory = AllocationPolicy::minimal_peak;

  bool is(AllocationPolicy handling) const { return memory == handling; }
  RunOptions options(Bytes budget) const {
    return {.memory_budget = budget, .threads = 1, .memory = memory};
  }
};

/// All combinations.
inline std::vector<Way> ways() {
  std::vector<Way> all;
  for (const AllocationPolicy memory : {AllocationPolicy::minimal_peak, AllocationPolicy::pooled,
                                        AllocationPolicy::standard, AllocationPolicy::cached}) {
    const std::string name(name_of(memory));
    all.push_back({"lazy, " + name, [](Bytes) { return lazy(); }, memory});
    all.push_back({"hybrid, " + name,
                   [=](Bytes budget) {
                     return hybrid({.memory_budget = budget, .threads = 1, .memory = memory},
                                   {.nodes = 8});
                   },
                   memory});
    all.push_back({"eager, backward " + name,
                   [](Bytes budget) { return eager({.memory_budget = budget, .threads = 1}); },
                   memory});
  }
  return all;
}

inline const Meter& meter_of(const std::shared_ptr<EngineEvaluator>& evaluator) {
  return evaluator->meter();
}

}  // namespace palimpsest
