#include "strategy/compile/cache_budget.h"

#include <algorithm>
#include <set>

namespace palimpsest {

bool has_caches(const Machine& machine) {
  return std::ranges::any_of(machine.caches, [](const Cache& cache) { return cache.bytes > 0; });
}

Bytes budget_for_caches(const Machine& machine, Bytes budget,
                        const std::function<std::optional<WithinBudget>(Bytes)>& plan) {
  const std::optional<WithinBudget> asked = plan(budget);
  if (!asked) return budget;
  // The cost model is inexact, so a program should not recompute for a small predicted gain.
  constexpr double worth = 0.97;
  Bytes best = budget;
  double least = asked->seconds * worth;
  if (asked->near_seconds >= least) return budget;
  // Cache sizes, and shares of the peak, since other data passes through the caches too.
  std::set<Bytes, std::greater<>> candidates{asked->peak / 2, asked->peak / 8};
  for (const Cache& cache : machine.caches) candidates.insert(cache.bytes);
  const Bytes smallest = machine.caches.front().bytes;
  for (const Bytes candidate : candidates) {
    if (candidate >= asked->peak || candidate <= smallest) continue;
    const std::optional<WithinBudget> within = plan(candidate);
    if (!within) break;
    if (within->seconds >= least) continue;
    least = within->seconds;
    best = candidate;
  }
  return best;
}

}  // namespace palimpsest
