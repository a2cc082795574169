#include "checkpoint/planners/optimum.h"

#include <algorithm>

#include "checkpoint/layout.h"
#include "checkpoint/liveness.h"

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

std::optional<Optimum::Found> Optimum::look(Bytes limit, double patience,
                                            const std::optional<Found>& known) {
  LiveSetSearch search(sets_, limit, left_);
  std::optional<Found> found = known ? search.run(patience, known->cost) : search.run(patience);
  left_ -= std::min(left_, search.reached());
  gave_up_ = gave_up_ || search.ran_out();
  return found;
}

std::optional<Schedule> Optimum::cheapest(Bytes limit) {
  if (at_start_ > limit) return {};
  // What is found soon bounds what has to be looked at for the optimum.
  const std::optional<Found> some = look(limit, 0.25);
  if (!some) return {};
  const std::optional<Found> best = look(limit, 1, some);
  if (gave_up_) return {};
  internal_check(best.has_value(), "a search lost the schedule it began with");
  return drop_after_last_use(graph_, best->order);
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
  for (Bytes least = std::max(at_start_, sets_.least_peak()); least < most && !gave_up_;) {
    const Bytes between = least + (most - least) / 2;
    if (const auto found = look(between, 0)) {
      lowest = drop_after_last_use(graph_, found->order);
      most = simulate(graph_, lowest).peak;
    } else {
      least = between + 1;
    }
  }
  return lowest;
}

std::optional<Schedule> Optimum::near(Bytes limit) {
  if (at_start_ > limit) return {};
  std::optional<Found> best;
  left_ = most_sets_;
  // Ever nearer to the optimum, and harder to find.
  for (const double patience : {0.0, 0.25, 0.6}) {
    if (left_ == 0) break;
    if (std::optional<Found> found = look(limit, patience, best)) best = std::move(found);
  }
  if (!best) return {};
  return drop_after_last_use(graph_, best->order);
}

}  // namespace palimpsest
