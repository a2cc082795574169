#pragma once

#include <string>
#include <vector>

#include "checkpoint/engine_planner.h"
#include "checkpoint/planners.h"

namespace palimpsest::tests {

/// Proposes the schedules of greedy and counts the calls.
class CountedPlanner final : public EnginePlanner {
 public:
  explicit CountedPlanner(bool ignores_budget) : ignores_budget_(ignores_budget) {}
  std::string name() const override { return "counted"; }
  bool ignores_budget() const override { return ignores_budget_; }
  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    ++times;
    return greedy()->propose(graph, budget);
  }

  mutable int times = 0;

 private:
  bool ignores_budget_;
};

}  // namespace palimpsest::tests
