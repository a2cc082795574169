#include "checkpoint/planners/neighbourhood_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "checkpoint/planners/retention.h"
#include "checkpoint/planning_stop.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

/// Storages that would need more missing nodes than this are not given up.
constexpr std::size_t most_missing = 400;

/// Positions in an order that compute a node again.
std::vector<std::size_t> recomputations(const Graph& graph, std::span<const NodeId> order) {
  std::vector<bool> seen(graph.node_count());
  std::vector<std::size_t> result;
  for (std::size_t position = 0; position < order.size(); ++position) {
    if (seen[order[position]]) result.push_back(position);
    seen[order[position]] = true;
  }
  return result;
}

}  // namespace

NeighbourhoodSearch::NeighbourhoodSearch(const Graph& graph, Bytes budget, std::uint64_t seed)
    : graph_(graph),
      budget_(budget),
      limit_(budget),
      timeline_(graph),
      random_(seed),
      met_(graph.node_count()) {}

std::vector<std::vector<NodeId>> NeighbourhoodSearch::lower(std::vector<NodeId> order,
                                                            std::size_t effort) {
  constexpr std::array parts = {0.3, 0.1, 0.03, 0.01};
  std::size_t left = 20 * effort + 30'000 / (order.size() + 1);
  std::vector<std::vector<NodeId>> lowered;
  timeline_.read(order);
  Bytes peak = timeline_.peak();
  // No eviction lowers the peak further. The peak of an order without steps is 0.
  if (!least_peak_) least_peak_ = timeline_.least_peak();
  const Bytes least = std::min(peak, *least_peak_);
  noise_ = 0;
  for (std::size_t part = 0; part < parts.size() && left > 0;) {
    PlanningStop::check();
    limit_ = peak - static_cast<Bytes>(parts[part] * static_cast<double>(peak));
    std::vector<NodeId> next = order;
    const std::size_t most = left / 4 + 1;
    left -= most;
    if (limit_ < least || !repair(next, static_cast<int>(most))) {
      ++part;
      continue;
    }
    order = hold_instead(graph_, without_useless(graph_, next), limit_);
    timeline_.read(order);
    peak = timeline_.peak();
    lowered.push_back(order);
  }
  limit_ = budget_;
  return lowered;
}

double NeighbourhoodSearch::cost(std::span<const NodeId> order) const {
  double sum = 0;
  for (const NodeId node : order) sum += graph_.cost(node);
  return sum;
}

void NeighbourhoodSearch::find_excess() {
  // A sample of the positions ranks the gaps as well as all of them.
  constexpr std::size_t most = 256;
  over_.clear();
  excess_.clear();
  const auto heights = timeline_.heights();
  const auto count = static_cast<std::size_t>(
      std::count_if(heights.begin(), heights.end(), [&](Bytes height) { return height > limit_; }));
  const std::size_t stride = count / most + 1;
  std::size_t met = 0;
  for (std::size_t position = 0; position < heights.size(); ++position) {
    if (heights[position] <= limit_ || met++ % stride != 0) continue;
    over_.push_back(static_cast<Timeline::Position>(position));
    excess_.push_back(heights[position] - limit_);
  }
}

double NeighbourhoodSearch::excess_in(const Timeline::Gap& gap) const {
  const Bytes bytes = timeline_.bytes(gap.root);
  double sum = 0;
  const auto begin = std::upper_bound(over_.begin(), over_.end(), gap.after);
  for (auto over = begin; over != over_.end() && *over < gap.before; ++over) {
    const Bytes excess = excess_[static_cast<std::size_t>(over - over_.begin())];
    sum += static_cast<double>(std::min(bytes, excess));
  }
  return sum;
}

bool NeighbourhoodSearch::find_missing(const Timeline::Gap& gap, Timeline::Position position,
                                       double most_cost) {
  ++round_;
  missing_.clear();
  stack_.clear();
  missing_cost_ = 0;
  const auto want = [&](NodeId node) {
    if (met_[node] == round_) return;
    met_[node] = round_;
    stack_.push_back(node);
  };
  timeline_.live_values(gap.root, position, values_);
  for (const ValueId value : values_) want(graph_.producer(value));
  while (!stack_.empty()) {
    const NodeId node = stack_.back();
    stack_.pop_back();
    missing_.push_back(node);
    missing_cost_ += graph_.cost(node);
    if (missing_.size() > most_missing || missing_cost_ > most_cost) return false;
    for (const ValueId input : timeline_.inputs(node)) {
      const bool given_up = graph_.storage(input) == gap.root;
      if (given_up || !timeline_.is_live(input, gap.before)) want(graph_.producer(input));
    }
  }
  return true;
}

bool NeighbourhoodSearch::find_eviction(Timeline::Position position, Eviction& best) {
  best.score = -1;
  std::normal_distribution<double> normal;
  for (const Timeline::Gap& gap : timeline_.gaps(position)) {
    const double noise = noise_ > 0 ? std::exp(noise_ * normal(random_)) : 1;
    const double worth = excess_in(gap) * noise;
    const double most_cost =
        best.score > 0 ? worth / best.score : std::numeric_limits<double>::infinity();
    if (!find_missing(gap, position, most_cost)) continue;
    const double score = worth / (missing_cost_ + 1e-12);
    if (score <= best.score) continue;
    best.score = score;
    best.after = gap.after;
    best.before = gap.before;
    best.nodes = missing_;
  }
  return best.score >= 0;
}

bool NeighbourhoodSearch::repair(std::vector<NodeId>& order, int most) {
  // Surrenders that are far apart can share one reading of the order.
  const std::size_t at_once = 1 + std::min<std::size_t>(order.size() / 1000, 15);
  std::vector<Eviction> evictions;
  for (int given_up = 0; given_up <= most;) {
    timeline_.read(order);
    if (timeline_.peak() <= limit_) return true;
    find_excess();
    evictions.clear();
    Timeline::Position position = timeline_.highest();
    while (position >= 0 && evictions.size() < at_once) {
      Eviction& best = evictions.emplace_back();
      if (!find_eviction(position, best)) {
        if (evictions.size() == 1) return false;
        evictions.pop_back();
        break;
      }
      ++given_up;
      position = highest_outside(evictions);
    }
    insert(order, evictions);
  }
  return false;
}

Timeline::Position NeighbourhoodSearch::highest_outside(std::span<const Eviction> evictions) const {
  Timeline::Position result = -1;
  Bytes most = 0;
  for (std::size_t i = 0; i < over_.size(); ++i) {
    const Timeline::Position position = over_[i];
    const bool covered = std::any_of(evictions.begin(), evictions.end(), [&](const auto& one) {
      return one.after <= position && position <= one.before;
    });
    if (covered || excess_[i] <= most) continue;
    most = excess_[i];
    result = position;
  }
  return result;
}

void NeighbourhoodSearch::insert(std::vector<NodeId>& order, std::vector<Eviction>& evictions) {
  std::sort(evictions.begin(), evictions.end(),
            [](const Eviction& a, const Eviction& b) { return a.before > b.before; });
  for (Eviction& one : evictions) {
    std::sort(one.nodes.begin(), one.nodes.end());
    order.insert(order.begin() + one.before, one.nodes.begin(), one.nodes.end());
  }
}

void NeighbourhoodSearch::take_out(std::vector<NodeId>& order) {
  constexpr std::size_t most_out = 40;  // removed parts have to be replaced
  const std::vector<std::size_t> again = recomputations(graph_, order);
  if (again.empty()) return;
  std::vector<bool> out(order.size());
  switch (below(3)) {
    case 0: {  // a long run
      const std::size_t first = below(again.size());
      const std::size_t last = std::min(again.size(), first + 1 + below(most_out));
      for (std::size_t i = first; i < last; ++i) out[again[i]] = true;
      break;
    }
    case 1:  // a few runs
      for (std::size_t runs = 1 + below(4); runs > 0; --runs) {
        const std::size_t first = below(again.size());
        const std::size_t last = std::min(again.size(), first + 1 + below(4));
        for (std::size_t i = first; i < last; ++i) out[again[i]] = true;
      }
      break;
    default: {  // some share of all
      const double share = std::min(0.02 + 0.3 * uniform(), static_cast<double>(most_out) /
                                                                static_cast<double>(again.size()));
      for (const std::size_t position : again) out[position] = uniform() < share;
    }
  }
  std::size_t kept = 0;
  for (std::size_t position = 0; position < order.size(); ++position) {
    if (!out[position]) order[kept++] = order[position];
  }
  order.resize(kept);
  order = without_useless(graph_, order);
}

std::vector<NodeId> NeighbourhoodSearch::improve(
    std::vector<NodeId> start, std::uint64_t moves, const std::function<bool()>& stop,
    const std::function<Bytes(std::span<const NodeId>)>& size) {
  constexpr int most_evictions = 60;
  // Cycles get longer and start from the best order. Each has a different initial temperature.
  constexpr std::array hottest = {0.003, 0.001, 0.01};  // of the cost of one pass
  constexpr std::uint64_t first_cycle = 250;
  const double one_pass = graph_.one_pass_cost();
  // Orders of the same cost differ in whether their layouts fit. On small graphs a layout is as
  // fast as a move, so each order pays for the bytes beyond the budget. On others only the cheapest
  // orders are laid out, and the limit of live bytes falls until layouts fit.
  const bool all_laid_out = graph_.node_count() < 1000;
  constexpr double price = 2;  // passes that a layout of twice the budget costs
  std::vector<NodeId> best = start;
  const auto price_of = [&](Bytes over) {
    return price * one_pass * static_cast<double>(over) / static_cast<double>(budget_);
  };
  const Bytes too_large = std::max<Bytes>(size(best) - budget_, 0);
  double best_cost = too_large == 0 ? cost(best) : std::numeric_limits<double>::infinity();
  std::vector<NodeId> current = std::move(start);
  double current_cost = cost(current) + (all_laid_out ? price_of(too_large) : 0);
  std::uint64_t begun = 0;
  std::uint64_t length = first_cycle;
  std::size_t cycle = 0;
  for (std::uint64_t move = 0; move < moves && !stop(); ++move) {
    PlanningStop::check();
    if (best_cost <= one_pass * (1 + 1e-12)) break;  // nothing is left to save
    if (move == begun + length) {
      begun = move;
      if (cycle % 2 == 0) limit_ = budget_;
      if (++cycle % 6 == 0) length *= 2;
      if (std::isfinite(best_cost)) {
        current = best;
        current_cost = best_cost;
      }
    }
    const double left = 1 - static_cast<double>(move - begun) / static_cast<double>(length);
    const double temperature = one_pass * (hottest[cycle % hottest.size()] * left * left + 1e-9);
    noise_ = 0.1 + 0.8 * uniform();
    std::vector<NodeId> next = current;
    take_out(next);
    if (!repair(next, most_evictions)) continue;
    next = hold_instead(graph_, without_useless(graph_, next), limit_);
    double next_cost = cost(next);
    const auto refused = [&] {
      return next_cost > current_cost &&
             uniform() >= std::exp((current_cost - next_cost) / temperature);
    };
    if (refused()) continue;
    const bool cheapest = next_cost < best_cost * (1 - 1e-12);
    const Bytes over = cheapest || all_laid_out ? size(next) - budget_ : 0;
    if (over > 0 && all_laid_out) {
      next_cost += price_of(over);
      if (refused()) continue;
    } else if (over > 0) {
      limit_ = std::max(limit_ - over / 2, budget_ - budget_ / 12);
    } else if (cheapest) {
      best = next;
      best_cost = next_cost;
    }
    current = std::move(next);
    current_cost = next_cost;
  }
  return best;
}

}  // namespace palimpsest
