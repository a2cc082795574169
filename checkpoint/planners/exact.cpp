#include <algorithm>

#include "checkpoint/layout.h"
#include "checkpoint/liveness.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/live_set_search.h"

namespace palimpsest {

namespace {

/// Exact answers about one graph.
class Optimum {
 public:
  Optimum(const Graph& graph, std::uint32_t most_sets)
      : graph_(graph), sets_(graph), most_sets_(most_sets) {
    std::vector<bool> counted(graph.value_count());
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      const ValueId root = graph.storage(value);
      if (!graph.is_present(value) || counted[root]) continue;
      counted[root] = true;
      at_start_ += graph.bytes(root);
    }
  }

  /// The least cost of all schedules whose live bytes are within `limit`; nothing when there is
  /// none.
  std::optional<Schedule> cheapest(Bytes limit) const {
    if (at_start_ > limit) return {};
    LiveSetSearch search(sets_, limit, most_sets_);
    // Its cost bounds what the search for the optimum has to look at.
    constexpr double hurry = 0.25;
    const auto some = run(search, hurry);
    if (!some) return {};
    const auto best = run(search, 1, some->cost);
    internal_check(best.has_value(), "a search lost the schedule it began with");
    return drop_after_last_use(graph_, best->order);
  }

  /// The least peak of all schedules; the same one whatever was asked for before.
  Schedule lowest() const {
    Schedule lowest = drop_after_last_use(graph_, graph_.needed_nodes());
    Bytes most = simulate(graph_, lowest).peak;
    for (Bytes least = std::max(at_start_, sets_.least_peak()); least < most;) {
      const Bytes between = least + (most - least) / 2;
      LiveSetSearch search(sets_, between, most_sets_);
      if (const auto found = run(search, 0)) {
        lowest = drop_after_last_use(graph_, found->order);
        most = simulate(graph_, lowest).peak;
      } else {
        least = between + 1;
      }
    }
    return lowest;
  }

 private:
  template <class... Most>
  std::optional<LiveSetSearch::Found> run(LiveSetSearch& search, double patience,
                                          Most... most) const {
    auto found = search.run(patience, most...);
    if (!search.ran_out()) return found;
    throw ArgumentError("[exact] " + std::to_string(sets_.nodes().size()) +
                        " nodes go into the targets, and their optimum is not among the first " +
                        std::to_string(most_sets_) +
                        " sets of live values; look at more sets, or use another planner, as auto");
  }

  const Graph& graph_;
  LiveSets sets_;
  std::uint32_t most_sets_;
  Bytes at_start_ = 0;
};

class Exact final : public Planner {
 public:
  explicit Exact(ExactSettings settings) : settings_(settings) {
    if (settings.most_sets > 0) return;
    throw ArgumentError("[exact] no set of live values can be looked at; give most_sets");
  }

  std::string name() const override { return "exact"; }
  std::string key() const override {
    return "exact " + std::to_string(settings_.most_sets) + (settings_.lay_out ? "" : " live");
  }
  bool accepts_keep_all() const override { return true; }

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    const Optimum optimum(graph, settings_.most_sets);
    std::vector<Proposal> proposals;
    // A layout may take more than the live bytes: then less has to be live.
    Bytes limit = budget;
    for (int tries = 0; tries < 4; ++tries) {
      const std::optional<Schedule> cheapest = optimum.cheapest(limit);
      if (!cheapest) break;
      proposals.emplace_back(*cheapest);
      if (!settings_.lay_out) return proposals;
      const Bytes over = lay_out(graph, *cheapest, budget).size - budget;
      if (over <= 0) return proposals;
      limit = simulate(graph, *cheapest).peak - over;
    }
    proposals.emplace_back(optimum.lowest());
    return proposals;
  }

 private:
  ExactSettings settings_;
};

}  // namespace

PlannerPtr exact(ExactSettings settings) { return std::make_shared<Exact>(settings); }

}  // namespace palimpsest
