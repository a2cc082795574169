#include "checkpoint/planners/search.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "checkpoint/layout.h"
#include "checkpoint/liveness.h"
#include "checkpoint/planners/limit_search.h"

namespace palimpsest {

namespace {

using Clock = std::chrono::steady_clock;

std::vector<NodeId> order_of(const Schedule& schedule) {
  std::vector<NodeId> order;
  for (const Step& step : schedule.steps) {
    if (step.kind == Step::Kind::compute) order.push_back(step.id);
  }
  return order;
}

class Searching final : public Planner {
 public:
  Searching(std::string name, PlannerPtr first, SearchSettings settings)
      : name_(std::move(name)), first_(std::move(first)), settings_(settings) {
    if (settings.seconds && !(*settings.seconds >= 0)) {
      throw ArgumentError("[" + name_ + "] " + std::to_string(*settings.seconds) +
                          " seconds are no time; give a positive number or 0");
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

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    const auto begin = Clock::now();
    std::vector<Proposal> proposals = first_->propose(graph, budget);
    for (Proposal& proposal : proposals) {
      if (proposal.planner.empty()) proposal.planner = first_->name();
    }
    const std::uint64_t moves = moves_for(graph);
    if (moves == 0) return proposals;
    const auto stop = [&] {
      return settings_.seconds &&
             std::chrono::duration<double>(Clock::now() - begin).count() >= *settings_.seconds;
    };
    const auto size = [&](std::span<const NodeId> order) {
      if (!settings_.lay_out) return Bytes{0};
      return lay_out(graph, drop_after_last_use(graph, order), budget).size;
    };
    LimitSearch search(graph, budget, settings_.seed);
    const auto fits = [&](std::span<const NodeId> order) {
      return search.keeps_to_limit(order) && size(order) <= budget;
    };
    std::vector<NodeId> order = best(graph, proposals, budget);
    bool found = fits(order);
    if (!found) {
      for (std::vector<NodeId>& lower : search.lower(order)) {
        proposals.emplace_back(drop_after_last_use(graph, lower), "search");
        if (found) continue;
        found = fits(lower);
        order = std::move(lower);
      }
    }
    if (search.keeps_to_limit(order)) {
      order = search.improve(std::move(order), moves, stop, size);
      proposals.emplace_back(drop_after_last_use(graph, order), "search");
    }
    return proposals;
  }

 private:
  std::uint64_t moves_for(const Graph& graph) const {
    constexpr std::uint64_t most = 2000;
    constexpr double seconds_per_node = 0.7e-6;  // of a move
    if (settings_.moves) return *settings_.moves;
    if (settings_.seconds) return std::numeric_limits<std::uint64_t>::max();
    const double seconds = seconds_per_node * graph.node_count();
    return static_cast<std::uint64_t>(
        std::min<double>(most, 0.1 * graph.one_pass_cost() / seconds));
  }

  /// The order of the cheapest schedule whose peak keeps to the budget, or of the lowest peak.
  static std::vector<NodeId> best(const Graph& graph, const std::vector<Proposal>& proposals,
                                  Bytes budget) {
    const Schedule* best = nullptr;
    Bytes peak = 0;
    double cost = 0;
    for (const auto& [schedule, planner] : proposals) {
      const Simulation now = simulate(graph, schedule);
      const bool fits = now.peak <= budget;
      const bool better =
          best == nullptr || (fits ? peak > budget || now.cost < cost : now.peak < peak);
      if (!better) continue;
      best = &schedule;
      peak = now.peak;
      cost = now.cost;
    }
    return order_of(*best);
  }

  std::string name_;
  PlannerPtr first_;
  SearchSettings settings_;
};

}  // namespace

PlannerPtr search_from(std::string name, PlannerPtr first, SearchSettings settings) {
  return std::make_shared<Searching>(std::move(name), std::move(first), settings);
}

PlannerPtr search(SearchSettings settings) { return search_from("search", greedy(), settings); }

}  // namespace palimpsest
