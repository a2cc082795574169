#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// Budgets from the smallest feasible one to what a run without a budget takes, in `count` even
/// steps. `run` makes the program anew and runs it within a budget.
inline std::vector<Bytes> feasible_budgets(const std::function<Gradients(Bytes)>& run, int count) {
  const Bytes largest = run(unlimited).report().predicted_peak;
  Bytes smallest = largest;
  try {
    run(1);
  } catch (const BudgetError& error) {
    smallest = std::min(largest, error.smallest_feasible());
  }
  std::vector<Bytes> budgets;
  for (int k = 0; k < count; ++k)
    budgets.push_back(smallest + (largest - smallest) * k / (count - 1));
  return budgets;
}

}  // namespace palimpsest
