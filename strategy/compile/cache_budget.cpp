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
  // A model that is not exact should not make a program compute more for little.
  constexpr double worth = 0.97;
  Bytes best = budget;
  double least = asked->seconds * worth;
  if (asked->near_seconds >= least) return budget;
  // What fits the caches, and shares of what there would be: other things move through them too.
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
