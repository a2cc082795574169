#include "checkpoint/planners/search.h"

#include "checkpoint/engine_planner.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

#include "checkpoint/layout.h"
#include "checkpoint/lower_bound.h"
#include "checkpoint/pareto_front.h"
#include "checkpoint/planners/lowest.h"
#include "checkpoint/planners/neighbourhood_search.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

using Clock = std::chrono::steady_clock;

/// The lowest proposal of all, and the lowest of any other planner.
std::vector<const Schedule*> two_lowest(std::span<const Measured> proposals) {
  const Measured* best = &proposals.front();
  const Measured* second = nullptr;
  for (const Measured& one : proposals) {
    if (one.peak < best->peak) best = &one;
  }
  for (const Measured& one : proposals) {
    if (one.proposal->planner == best->proposal->planner) continue;
    if (second == nullptr || one.peak < second->peak) second = &one;
  }
  std::vector<const Schedule*> schedules{&best->proposal->schedule};
  if (second != nullptr) schedules.push_back(&second->proposal->schedule);
  return schedules;
}

class Searching final : public EnginePlanner {
 public:
  Searching(std::string name, PlannerPtr first, SearchSettings settings)
      : name_(std::move(name)), first_(std::move(first)), settings_(settings) {
    if (settings.seconds && !(*settings.seconds >= 0)) {
      throw ArgumentError("[" + name_ + "] the time limit is " + std::to_string(*settings.seconds) +
                          " seconds; give a positive number or 0");
    }
  }

  std::string name() const override { return name_; }
  std::string key() const override {
    const auto text = [](const auto& setting) {
      return setting ? std::to_string(*setting) : std::string("default");
    };
    return name_ + " " + text(settings_.moves) + " " + text(settings_.seconds) + " " +
           std::to_string(settings_.seed) + (settings_.lay_out ? "" : " live");
  }
  bool accepts_keep_all() const override { return true; }
  bool ignores_budget() const override {
    return settings_.moves == 0 && engine_part(first_).ignores_budget();
  }

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    const auto begin = Clock::now();
    NeighbourhoodSearch search(graph, budget, settings_.seed);
    std::vector<Measured> proposals = begin_with(graph, budget, search);
    if (may_be_beaten_below(graph, budget, proposals)) {
      std::ranges::move(measure_lowest(graph, find_lowest(graph, proposals)),
                        std::back_inserter(proposals));
    }
    improve(graph, budget, search, begin, proposals);
    return proposals_of(std::move(proposals));
  }

  std::optional<Lowest> lowest(const Graph& graph, Bytes budget) const override {
    if (moves_for(graph) == 0) return {};  // no search was requested
    const auto begin = Clock::now();
    NeighbourhoodSearch search(graph, budget, settings_.seed);
    // Starts from the proposals alone, because the size must not depend on this budget's search
    // results.
    Lowest lowest = find_lowest(graph, begin_with(graph, 0, search));
    if (lowest.size > budget) return lowest;
    const Bytes size = lowest.size;
    std::vector<Measured> found = measure_lowest(graph, std::move(lowest));
    improve(graph, budget, search, begin, found);
    return Lowest{size, proposals_of(std::move(found))};
  }

  PlannerPtr continuing(Schedule found, double seconds, std::uint64_t round) const override;

 private:
  /// The other planner's proposals and lower ones. They do not depend on the budget, so a larger
  /// one has every choice that a smaller one has.
  std::vector<Measured> begin_with(const Graph& graph, Bytes budget,
                                   NeighbourhoodSearch& search) const {
    std::vector<Measured> proposals =
        measure(graph, first_->propose(graph, budget), first_->name());
    internal_check(!proposals.empty(), "a planner proposed nothing");
    add_lower(graph, search, proposals);
    return proposals;
  }

  /// The schedules found, and those of online eviction with as much memory.
  std::vector<Measured> measure_lowest(const Graph& graph, Lowest lowest) const {
    std::vector<Measured> found = measure(graph, std::move(lowest.proposals), name_);
    std::ranges::move(measure(graph, online()->propose(graph, lowest.size), online()->name()),
                      std::back_inserter(found));
    return found;
  }

  /// True when a budget too small for all proposals may have a cheaper plan than this one. `lowest`
  /// is called for such a budget, and its results must be known here too. False when looking for
  /// them would take the time that is available for moves.
  bool may_be_beaten_below(const Graph& graph, Bytes budget,
                           std::span<const Measured> proposals) const {
    constexpr NodeId small = 64;  // where the search itself finds them
    if (moves_for(graph) == 0 || graph.node_count() <= small) return false;
    constexpr double seconds_per_node = 3e-3;  // of looking for the lowest
    const double takes = seconds_per_node * graph.node_count();
    if (settings_.seconds.value_or(0) > 0 && takes > *settings_.seconds / 4) return false;
    const auto size = [&](const Measured& one, Bytes enough) {
      if (!settings_.lay_out) return one.peak;
      return lay_out_quickly(graph, one.proposal->schedule, enough).size;
    };
    std::vector<const Measured*> order;
    for (const Measured& one : proposals) order.push_back(&one);
    std::ranges::stable_sort(order, {}, [](const Measured* one) { return one->cost; });
    const auto cheapest = std::ranges::find_if(order, [&](const Measured* one) {
      return one->peak <= budget && size(*one, budget) <= budget;
    });
    if (cheapest == order.end()) {  // where one fits with a thorough layout, `lowest` is not called
      return std::ranges::any_of(proposals,
                                 [&](const Measured& one) { return one.peak <= budget; });
    }
    const double cost = (*cheapest)->cost;
    if (cost <= graph.one_pass_cost() * (1 + 1e-12)) return false;
    // Far above the smallest budget plans are cheaper than those below it, except in rare cases.
    constexpr auto far = [](Bytes bytes) { return bytes + bytes / 2; };
    std::ranges::stable_sort(order, {}, [](const Measured* one) { return one->peak; });
    Bytes smallest = budget;
    for (const Measured* one : order) {
      if (one->peak >= smallest) break;
      smallest = std::min(smallest, size(*one, one->peak));
    }
    return budget < far(smallest) && cost > lower_bound(graph, smallest - 1);
  }

  static void add_lower(const Graph& graph, NeighbourhoodSearch& search,
                        std::vector<Measured>& proposals) {
    std::vector<Schedule> lowered;
    for (const Schedule* start : two_lowest(proposals)) {
      for (const std::vector<NodeId>& order : search.lower(order_of(*start))) {
        lowered.push_back(drop_after_last_use(graph, order));
      }
    }
    for (Schedule& schedule : lowered) {
      proposals.push_back(measure(graph, {std::move(schedule), "search"}));
    }
  }

  /// Improves the cheapest proposal that fits, in the time left since `begin`, and adds the result.
  void improve(const Graph& graph, Bytes budget, NeighbourhoodSearch& search,
               Clock::time_point begin, std::vector<Measured>& proposals) const {
    const std::uint64_t moves = moves_for(graph);
    if (moves == 0) return;
    const auto stop = [&] {
      return settings_.seconds &&
             std::chrono::duration<double>(Clock::now() - begin).count() >= *settings_.seconds;
    };
    const auto size = [&](std::span<const NodeId> order) {
      if (!settings_.lay_out) return Bytes{0};
      return lay_out_quickly(graph, drop_after_last_use(graph, order), budget).size;
    };
    cheapest_first(proposals);
    std::vector<NodeId> start;
    for (const Measured& one : proposals) {
      if (one.peak > budget) continue;
      std::vector<NodeId> order = order_of(one.proposal->schedule);
      const bool fits = size(order) <= budget;
      if (fits || start.empty()) start = std::move(order);
      if (fits) break;
    }
    if (start.empty()) return;
    const std::vector<NodeId> found = search.improve(std::move(start), moves, stop, size);
    proposals.push_back(measure(graph, {drop_after_last_use(graph, found), "search"}));
  }

  std::uint64_t moves_for(const Graph& graph) const {
    if (settings_.moves) return *settings_.moves;
    if (settings_.seconds) return std::numeric_limits<std::uint64_t>::max();
    return std::min(2000u, 1'000'000u / (graph.node_count() + 1));
  }

  std::string name_;
  PlannerPtr first_;
  SearchSettings settings_;
};

/// Improves one schedule for so many seconds.
class Continuing final : public Planner {
 public:
  Continuing(Schedule found, double seconds, std::uint64_t seed)
      : found_(std::move(found)), seconds_(seconds), seed_(seed) {}

  std::string name() const override { return "search"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    NeighbourhoodSearch search(graph, budget, seed_);
    const auto begin = Clock::now();
    const auto stop = [&] {
      return std::chrono::duration<double>(Clock::now() - begin).count() >= seconds_;
    };
    const auto size = [&](std::span<const NodeId> order) {
      return lay_out_quickly(graph, drop_after_last_use(graph, order), budget).size;
    };
    constexpr std::uint64_t moves = std::numeric_limits<std::uint64_t>::max();
    const std::vector<NodeId> better = search.improve(order_of(found_), moves, stop, size);
    return {drop_after_last_use(graph, better)};
  }

 private:
  Schedule found_;
  double seconds_;
  std::uint64_t seed_;
};

PlannerPtr Searching::continuing(Schedule found, double seconds, std::uint64_t round) const {
  if (settings_.moves.value_or(0) > 0) return nullptr;  // so many moves give the same plan
  return std::make_shared<Continuing>(std::move(found), seconds, settings_.seed + round);
}

}  // namespace

PlannerPtr search_from(std::string name, PlannerPtr first, SearchSettings settings) {
  return std::make_shared<Searching>(std::move(name), std::move(first), settings);
}

PlannerPtr search(SearchSettings settings) { return search_from("search", greedy(), settings); }

}  // namespace palimpsest
