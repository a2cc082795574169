#include <algorithm>
#include <chrono>
#include <iterator>

#include "checkpoint/engine_planner.h"
#include "checkpoint/permuted.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners/online_run.h"
#include "checkpoint/planners/optimum.h"
#include "checkpoint/planners/search.h"
#include "checkpoint/rematerialize.h"
#include "checkpoint/reorder.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

bool has_backward_part(const Graph& graph) {
  const NodeId begins = graph.backward_begins().value_or(0);
  return begins > 0 && std::ranges::any_of(graph.targets(), [&](ValueId target) {
           const NodeId node = graph.producer(target);
           return node >= begins && !graph.is_source(node);
         });
}

/// The starting points of `automatic`: the proposals of all other planners, and known ones.
class Portfolio final : public EnginePlanner {
 public:
  explicit Portfolio(std::vector<Proposal> known) : known_(std::move(known)) {}

  std::string name() const override { return "everyone"; }
  bool ignores_budget() const override { return true; }

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    std::vector<Proposal> proposals = known_;
    const auto add = [&](const PlannerPtr& planner) {
      for (Proposal& proposal : planner->propose(graph, budget)) {
        proposals.emplace_back(std::move(proposal.schedule), planner->name());
      }
    };
    add(greedy());
    if (has_backward_part(graph)) {
      add(chain());
      add(min_cut());
    }
    add_reordered(graph, budget, proposals);
    const std::size_t nodes = forward_nodes(graph).size();
    for (std::uint32_t count = 2; count <= nodes && count < 4096; count *= 2) {
      add(uniform({.segments = count}));
    }
    add_online(graph, proposals);
    return proposals;
  }

 private:
  /// Online eviction at levels below all others, which it can reach on some graphs.
  static void add_online(const Graph& graph, std::vector<Proposal>& proposals) {
    const std::size_t nodes = graph.needed_nodes().size();
    if (nodes == 0) return;
    Bytes lowest = unlimited;
    for (const Proposal& proposal : proposals) {
      lowest = std::min(lowest, simulate(graph, proposal.schedule).peak);
    }
    const std::size_t most_steps = 12 * nodes + 64;  // low levels are reached by thrashing
    std::size_t steps = 6'000 + most_steps;          // about a microsecond each
    for (Bytes part = 200; part <= 2000 && steps > 0;) {
      const Bytes level = lowest - std::max<Bytes>(lowest / part, 1);
      OnlineRun run = run_online(graph, level, std::min(steps, most_steps));
      steps -= run.steps;
      const Bytes peak = run.schedule ? simulate(graph, *run.schedule).peak : unlimited;
      if (peak < lowest) {
        proposals.emplace_back(std::move(*run.schedule), "online eviction");
        lowest = peak;
        part = std::max<Bytes>(part / 2, 10);
      } else {
        part *= 3;
      }
    }
  }

  static void add_reordered(const Graph& graph, Bytes budget, std::vector<Proposal>& proposals) {
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      if (graph.is_present(value)) return;
    }
    constexpr double enough = 0.99;  // of the peak; planning again takes time
    const auto peak = [&](const Schedule& schedule) {
      return static_cast<double>(simulate(graph, schedule).peak);
    };
    const std::vector<NodeId> order = reorder(graph);
    Schedule once = drop_after_last_use(graph, order);
    if (peak(once) > enough * peak(drop_after_last_use(graph, graph.needed_nodes()))) return;
    const Permuted permuted(graph, order);
    for (Proposal& proposal : greedy()->propose(permuted.graph(), budget)) {
      proposals.emplace_back(permuted.original(std::move(proposal.schedule)), "reordered, greedy");
    }
    proposals.emplace_back(std::move(once), "reordered");
  }

  std::vector<Proposal> known_;
};

/// The proposals of the planners that plan for the budget itself. Without moves they are left out,
/// because a larger budget would not have those of a smaller one.
std::vector<Proposal> proposals_for(const Graph& graph, Bytes budget) {
  std::vector<Proposal> proposals;
  for (const PlannerPtr& planner : {online(), quick()}) {
    for (Proposal& proposal : planner->propose(graph, budget)) {
      proposals.emplace_back(std::move(proposal.schedule), planner->name());
    }
  }
  return proposals;
}

/// Takes the optimum of a small graph when there is time to find it. Otherwise searches from the
/// proposals of all planners.
class Automatic final : public EnginePlanner {
 public:
  explicit Automatic(SearchSettings settings) : settings_(settings), search_(search(settings)) {}

  std::string name() const override { return search_->name(); }
  std::string key() const override { return search_->key(); }
  bool accepts_keep_all() const override { return true; }
  bool ignores_budget() const override { return engine_part(search_).ignores_budget(); }

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    if (settings_.moves == 0) return search_->propose(graph, budget);
    if (!LiveSets::holds(graph))
      return search(settings_, proposals_for(graph, budget))->propose(graph, budget);
    const auto begin = std::chrono::steady_clock::now();
    Optimum optimum(graph, most_sets());
    std::vector<Proposal> optima;
    const bool fits = optimum.propose(budget, settings_.lay_out, optima);
    SearchSettings settings = settings_;
    // Only the first is optimal. The others replace it when its layout is too large.
    if (fits && optima.size() == 1) settings.moves = 0;
    if (optimum.near()) optima.emplace_back(*optimum.near(), "exact");
    if (optima.empty()) optima.emplace_back(optimum.lowest(), "exact");
    if (settings.moves != 0)
      std::ranges::move(proposals_for(graph, budget), std::back_inserter(optima));
    if (settings.seconds) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      settings.seconds = std::max(0.0, *settings.seconds - spent.count());
    }
    return search(settings, std::move(optima))->propose(graph, budget);
  }

  std::optional<Lowest> lowest(const Graph& graph, Bytes budget) const override {
    if (settings_.moves == 0 || !LiveSets::holds(graph))
      return engine_part(search_).lowest(graph, budget);
    Schedule least = Optimum(graph, most_sets()).lowest();
    return engine_part(search(settings_, {{std::move(least), "exact"}})).lowest(graph, budget);
  }

  PlannerPtr fast() const override { return settings_.moves == 0 ? quick() : nullptr; }

  PlannerPtr continuing(Schedule found, double seconds, std::uint64_t round) const override {
    return engine_part(search_).continuing(std::move(found), seconds, round);
  }

 private:
  static PlannerPtr search(SearchSettings settings, std::vector<Proposal> known = {}) {
    return search_from("auto", std::make_shared<Portfolio>(std::move(known)), settings);
  }

  std::size_t most_sets() const {
    constexpr double most = 3'000'000;  // a hundred bytes each
    constexpr double a_second = 40'000;
    return static_cast<std::size_t>(std::min(most, a_second * settings_.seconds.value_or(5)));
  }

  SearchSettings settings_;
  PlannerPtr search_;
};

}  // namespace

PlannerPtr automatic(SearchSettings settings) { return std::make_shared<Automatic>(settings); }

}  // namespace palimpsest
