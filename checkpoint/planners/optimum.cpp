#include "checkpoint/planners/optimum.h"

#include <algorithm>

#include "checkpoint/layout.h"
#include "checkpoint/liveness.h"
#include "checkpoint/planners/live_set_search.h"

namespace palimpsest {

Optimum::Optimum(const Graph& graph, std::size_t most_sets)
    : graph_(graph), sets_(graph), most_sets_(most_sets) {
  std::vector<bool> counted(graph.value_count());
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    const ValueId root = graph.storage(value);
    if (!graph.is_present(value) || counted[root]) continue;
    counted[root] = true;
    at_start_ += graph.bytes(root);
  }
}

std::optional<Schedule> Optimum::cheapest(Bytes limit) {
  if (at_start_ > limit) return {};
  using Found = LiveSetSearch::Found;
  std::optional<Found> best;
  // What is found soon bounds what has to be looked at for the optimum, and is the answer when that
  // takes too long.
  const auto look = [&](double patience, std::size_t most_sets) {
    LiveSetSearch search(sets_, limit, most_sets);
    std::optional<Found> found = best ? search.run(patience, best->cost) : search.run(patience);
    if (found) best = std::move(found);
    return !search.ran_out();
  };
  bool sure = look(0.25, most_sets_ / 2);
  if (!best && !sure) sure = look(0, most_sets_);
  if (best) sure = look(1, most_sets_) || (look(0.6, most_sets_ / 2), false);
  gave_up_ = gave_up_ || !sure;
  if (!best) return {};
  return drop_after_last_use(graph_, best->order);
}

bool Optimum::propose(Bytes budget, bool lay_out, std::vector<Proposal>& proposals) {
  constexpr int most_tries = 4;
  Bytes limit = budget;
  for (int tries = 0; tries < most_tries; ++tries) {
    std::optional<Schedule> schedule = cheapest(limit);
    if (!schedule) return false;
    const Bytes over =
        lay_out ? palimpsest::lay_out(graph_, *schedule, budget).size - budget : Bytes{0};
    limit = simulate(graph_, *schedule).peak - over;
    proposals.emplace_back(std::move(*schedule), "exact");
    if (over <= 0) return true;
  }
  return false;
}

Schedule Optimum::lowest() {
  Schedule lowest = drop_after_last_use(graph_, graph_.needed_nodes());
  Bytes most = simulate(graph_, lowest).peak;
  for (Bytes least = std::max(at_start_, sets_.least_peak()); least < most;) {
    const Bytes between = least + (most - least) / 2;
    LiveSetSearch search(sets_, between, most_sets_);
    if (const auto found = search.run(0)) {
      lowest = drop_after_last_use(graph_, found->order);
      most = simulate(graph_, lowest).peak;
    } else {
      gave_up_ = gave_up_ || search.ran_out();
      least = between + 1;
    }
  }
  return lowest;
}

}  // namespace palimpsest
