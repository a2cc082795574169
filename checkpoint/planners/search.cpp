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

struct Measured {
  const Schedule* schedule;
  Bytes peak;
  double cost;
};

/// Cheapest first.
std::vector<Measured> measure(const Graph& graph, std::span<const Proposal> proposals) {
  std::vector<Measured> measured;
  measured.reserve(proposals.size());
  for (const Proposal& proposal : proposals) {
    const Simulation simulation = simulate(graph, proposal.schedule);
    measured.push_back({&proposal.schedule, simulation.peak, simulation.cost});
  }
  std::stable_sort(measured.begin(), measured.end(),
                   [](const Measured& a, const Measured& b) { return a.cost < b.cost; });
  return measured;
}

/// The lowest of the planner that made the lowest of all, and that of the other planners.
std::vector<const Schedule*> lowest(const Graph& graph, std::span<const Proposal> proposals) {
  constexpr std::size_t most = 2;
  std::vector<Bytes> peaks;
  for (const Proposal& proposal : proposals) {
    peaks.push_back(simulate(graph, proposal.schedule).peak);
  }
  std::vector<std::size_t> best;
  while (best.size() < most) {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < proposals.size(); ++i) {
      const bool there = std::ranges::any_of(
          best, [&](std::size_t one) { return proposals[one].planner == proposals[i].planner; });
      if (!there && (!next || peaks[i] < peaks[*next])) next = i;
    }
    if (!next) break;
    best.push_back(*next);
  }
  std::vector<const Schedule*> schedules;
  for (const std::size_t one : best) schedules.push_back(&proposals[one].schedule);
  return schedules;
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
    internal_check(!proposals.empty(), "a planner proposed nothing");
    LimitSearch search(graph, budget, settings_.seed);
    std::vector<Schedule> lowered;
    for (const Schedule* start : lowest(graph, proposals)) {
      for (std::vector<NodeId>& order : search.lower(order_of(*start))) {
        lowered.push_back(drop_after_last_use(graph, order));
      }
    }
    for (Schedule& schedule : lowered) proposals.emplace_back(std::move(schedule), "search");
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
    std::vector<Measured> starts = measure(graph, proposals);
    std::erase_if(starts, [&](const Measured& start) { return start.peak > budget; });
    if (starts.empty()) return proposals;
    const auto laid_out = std::find_if(starts.begin(), starts.end(), [&](const Measured& start) {
      return size(order_of(*start.schedule)) <= budget;
    });
    const Measured& start = laid_out != starts.end() ? *laid_out : starts.front();
    const std::vector<NodeId> found = search.improve(order_of(*start.schedule), moves, stop, size);
    proposals.emplace_back(drop_after_last_use(graph, found), "search");
    return proposals;
  }

  PlannerPtr continuing(Schedule found, double seconds, std::uint64_t round) const override;

 private:
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
    LimitSearch search(graph, budget, seed_);
    const auto begin = Clock::now();
    const auto stop = [&] {
      return std::chrono::duration<double>(Clock::now() - begin).count() >= seconds_;
    };
    const auto size = [&](std::span<const NodeId> order) {
      return lay_out(graph, drop_after_last_use(graph, order), budget).size;
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
  if (settings_.moves.value_or(0) > 0) return nullptr;  // more would not be the same for all
  return std::make_shared<Continuing>(std::move(found), seconds, settings_.seed + round);
}

}  // namespace

PlannerPtr search_from(std::string name, PlannerPtr first, SearchSettings settings) {
  return std::make_shared<Searching>(std::move(name), std::move(first), settings);
}

PlannerPtr search(SearchSettings settings) { return search_from("search", greedy(), settings); }

}  // namespace palimpsest
