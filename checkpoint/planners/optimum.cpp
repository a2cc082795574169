#include "checkpoint/planners/optimum.h"

#include <algorithm>

#include "checkpoint/layout.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

Optimum::Optimum(const Graph& graph, std::size_t most_sets)
    : graph_(graph), sets_(graph), most_sets_(most_sets), left_(most_sets) {
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
  LiveSetSearch search(sets_, limit, left_);
  std::optional<LiveSetSearch::Found> best;
  // An early solution bounds the search for the optimum, and may be the only one found.
  for (const double patience : {0.25, 0.7, 1.0}) {
    std::optional<LiveSetSearch::Found> found = search.find_cheaper(patience);
    if (found) best = std::move(found);
    if (!best || search.ran_out()) break;
  }
  left_ -= std::min(left_, search.reached());
  gave_up_ = gave_up_ || search.ran_out();
  if (search.ran_out() && !best) best = search.find_any();
  if (!best) return {};
  Schedule schedule = drop_after_last_use(graph_, best->order);
  if (!gave_up_) return schedule;
  near_ = std::move(schedule);
  return {};
}

bool Optimum::propose(Bytes budget, bool laid_out, std::vector<Proposal>& proposals) {
  constexpr int most_tries = 4;
  Bytes limit = budget;
  for (int tries = 0; tries < most_tries; ++tries) {
    std::optional<Schedule> schedule = cheapest(limit);
    if (!schedule) return false;
    const Bytes over = laid_out ? lay_out(graph_, *schedule, budget).size - budget : Bytes{0};
    if (over > 0) limit = simulate(graph_, *schedule).peak - over;
    proposals.emplace_back(std::move(*schedule), "exact");
    if (over <= 0) return true;
  }
  return false;
}

Schedule Optimum::lowest() {
  Schedule lowest = drop_after_last_use(graph_, graph_.needed_nodes());
  Bytes most = simulate(graph_, lowest).peak;
  std::size_t left = most_sets_;
  for (Bytes least = std::max(at_start_, sets_.least_peak()); least < most && left > 0;) {
    const Bytes between = least + (most - least) / 2;
    LiveSetSearch search(sets_, between, left / 3);
    if (const auto found = search.find_any()) {
      lowest = drop_after_last_use(graph_, found->order);
      most = simulate(graph_, lowest).peak;
    } else if (search.ran_out()) {  // a schedule may exist that is harder to find than others
      gave_up_ = true;
      least = between + 1;
    } else {
      least = search.next_budget();
    }
    left -= std::min(left, search.reached());
  }
  return lowest;
}

}  // namespace palimpsest
