#include "strategy/compile/kept_plannings.h"

#include <algorithm>

#include "strategy/base/cache_limit.h"

namespace palimpsest {

Bytes KeptPlannings::bytes_of(const Kept& kept) {
  return kept.graph->metadata_bytes() + kept.planning.bytes();
}

Bytes KeptPlannings::bytes() const { return bytes_of_all(kept_, bytes_of); }

Planning& KeptPlannings::find_or_add(const std::shared_ptr<const Graph>& graph,
                                     const PlannerPtr& planner) {
  const std::string key = planner->key();
  const std::uint64_t hash = graph->structure_hash();
  const auto same = std::ranges::find_if(kept_, [&](const Kept& one) {
    if (one.key != key || one.hash != hash) return false;
    // A plan states the form of its graph, but comparing graphs ignores the form.
    return one.graph == graph || (*one.graph == *graph && one.graph->form() == graph->form());
  });
  if (same != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, same);
  } else {
    kept_.push_front({graph, hash, planner, key, Planning(*graph, *planner)});
  }
  return kept_.front().planning;
}

void KeptPlannings::let_go() {
  if (kept_.front().planning.bytes() == 0) kept_.pop_front();
  while (bytes() > most_bytes_) kept_.pop_back();
}

}  // namespace palimpsest
