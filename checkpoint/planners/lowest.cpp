#include "checkpoint/planners/lowest.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "checkpoint/layout.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/neighbourhood_search.h"
#include "checkpoint/planners/online_run.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

/// Number of layouts that are worth some tenths of a second each.
constexpr std::size_t worth_trouble = 3;
constexpr std::size_t short_schedule = 300;
constexpr std::size_t long_schedule = 20'000;

/// False when a thorough layout has been made already, would gain little, or takes seconds.
bool is_worth_trouble(const Schedule& schedule, Bytes size, Bytes peak) {
  const std::size_t steps = schedule.steps.size();
  return steps > short_schedule && steps <= long_schedule && size - peak >= peak / 200;
}

Bytes layout_size(const Graph& graph, const Schedule& schedule, Bytes peak) {
  const bool quickly = schedule.steps.size() > short_schedule;
  return (quickly ? lay_out_quickly : lay_out)(graph, schedule, peak).size;
}

std::vector<const Measured*> lowest_first(std::span<const Measured> measured) {
  std::vector<const Measured*> order;
  for (const Measured& one : measured) order.push_back(&one);
  std::ranges::stable_sort(order, {}, [](const Measured* one) { return one->peak; });
  return order;
}

struct Sized {
  Bytes size;  ///< of the layout
  const Measured* measured;
};

/// The schedules whose peak is below the sizes of all layouts so far, smallest layout first.
std::vector<Sized> sizes_below_all(const Graph& graph, std::span<const Measured> measured) {
  std::vector<Sized> sizes;
  Bytes smallest = std::numeric_limits<Bytes>::max();
  for (const Measured* one : lowest_first(measured)) {
    if (one->peak >= smallest) break;  // a layout is never smaller than the peak
    sizes.push_back({layout_size(graph, one->proposal->schedule, one->peak), one});
    smallest = std::min(smallest, sizes.back().size);
  }
  std::ranges::stable_sort(sizes, {}, &Sized::size);
  return sizes;
}

/// The proposals of each planner, lowest peak first. Planners are in order of their lowest peak.
std::vector<std::vector<Measured>> by_planner(std::span<const Measured> measured) {
  std::vector<std::vector<Measured>> groups;
  for (const Measured* one : lowest_first(measured)) {
    const auto group = std::ranges::find_if(groups, [&](const std::vector<Measured>& other) {
      return other.front().proposal->planner == one->proposal->planner;
    });
    (group != groups.end() ? *group : groups.emplace_back()).push_back(*one);
  }
  return groups;
}

class Descent {
 public:
  Descent(const Graph& graph, std::span<const Measured> proposed)
      : graph_(graph),
        search_(graph, 0),
        online_left_(40 * (24 * graph.needed_nodes().size() + 64)) {
    constexpr std::size_t most_starts = 8;
    for (const std::vector<Measured>& planner : by_planner(proposed)) {
      take_smallest(planner);
      if (starts_.size() < most_starts) starts_.push_back(planner.front().proposal->schedule);
    }
  }

  Lowest run() {
    if (take_smallest(measure(graph_, online()->propose(graph_, 0), online()->name()))) {
      starts_.push_back(lowest_.proposals.back().schedule);
    }
    do {
      search_from_all();
    } while (run_online_below());
    take_trouble();
    return std::move(lowest_);
  }

 private:
  /// Takes what a planner would name as its own smallest budget, if it is the smallest so far.
  bool take_smallest(const std::vector<Measured>& planner) {
    const Measured& first = *std::ranges::min_element(planner, {}, &Measured::peak);
    if (first.peak >= lowest_.size) return false;
    Lowest lowest = smallest_layout(graph_, planner);
    if (lowest.size >= lowest_.size) return false;
    lowest_.size = lowest.size;
    std::ranges::move(lowest.proposals, std::back_inserter(lowest_.proposals));
    return true;
  }

  bool take(Measured one) {
    if (one.peak >= lowest_.size) return false;
    const Bytes size = layout_size(graph_, one.proposal->schedule, one.peak);
    laid_out_.push_back({size, one});
    if (size >= lowest_.size) return false;
    lowest_.size = size;
    starts_.push_back(one.proposal->schedule);
    lowest_.proposals.push_back(*one.proposal);
    return true;
  }

  /// The order of the lowest peak does not always have the smallest layout, so several are laid
  /// out.
  void search_from_all() {
    constexpr std::size_t effort = 10;
    while (!starts_.empty() && left_ > 0) {
      const auto orders = search_.lower(order_of(starts_.back()), effort);
      starts_.pop_back();
      for (auto order = orders.rbegin(); order != orders.rend() && left_ > 0; ++order) {
        Measured one = measure(graph_, {drop_after_last_use(graph_, *order), "search"});
        if (one.peak >= lowest_.size) break;
        left_ -= std::min(left_, one.proposal->schedule.steps.size());
        take(std::move(one));
      }
    }
  }

  bool run_online_below() {
    if (lowest_.size == 0) return false;
    const std::size_t most_steps = 24 * graph_.needed_nodes().size() + 64;
    for (const Bytes part : {Bytes{16}, Bytes{64}, Bytes{200}, lowest_.size}) {
      if (online_left_ < most_steps) return false;
      OnlineRun run = run_online(graph_, lowest_.size - lowest_.size / part, most_steps);
      online_left_ -= std::min(online_left_, run.steps);
      if (!run.schedule) continue;
      if (take(measure(graph_, {std::move(*run.schedule), online()->name()}))) return true;
    }
    return false;
  }

  void take_trouble() {
    std::ranges::stable_sort(laid_out_, {}, &LaidOut::size);
    for (std::size_t k = 0; k < std::min(laid_out_.size(), worth_trouble); ++k) {
      const Measured& one = laid_out_[k].measured;
      const Schedule& schedule = one.proposal->schedule;
      if (one.peak >= lowest_.size) continue;
      if (!is_worth_trouble(schedule, laid_out_[k].size, one.peak)) continue;
      const Bytes size = lay_out(graph_, schedule, one.peak).size;
      if (size >= lowest_.size) continue;
      lowest_.size = size;
      lowest_.proposals.push_back(*one.proposal);
    }
  }

  struct LaidOut {
    Bytes size;
    Measured measured;
  };

  const Graph& graph_;
  NeighbourhoodSearch search_;
  Lowest lowest_{std::numeric_limits<Bytes>::max(), {}};
  std::vector<LaidOut> laid_out_;
  std::vector<Schedule> starts_;  // not searched from yet
  std::size_t left_ = 40'000;     // steps of search results that may still be laid out
  std::size_t online_left_;       // steps that online eviction may still take
};

}  // namespace

Lowest smallest_layout(const Graph& graph, std::span<const Measured> measured) {
  const std::vector<Sized> sizes = sizes_below_all(graph, measured);
  Lowest lowest{sizes.front().size, {*sizes.front().measured->proposal}};
  for (std::size_t k = 0; k < std::min(sizes.size(), worth_trouble); ++k) {
    const Measured& one = *sizes[k].measured;
    if (!is_worth_trouble(one.proposal->schedule, sizes[k].size, one.peak)) continue;
    const Bytes size = lay_out(graph, one.proposal->schedule, one.peak).size;
    if (size < lowest.size) lowest = {size, {*one.proposal}};
  }
  // A layout far above the peak is not improved for long. Just below a known size, it is. The new
  // size counts if a plan within it finds it again.
  for (std::size_t k = 0; k < std::min(sizes.size(), worth_trouble); ++k) {
    const Measured& one = *sizes[k].measured;
    if (one.proposal->schedule.steps.size() > short_schedule || one.peak >= lowest.size) continue;
    const Bytes size = lay_out(graph, one.proposal->schedule, lowest.size - 1).size;
    if (size >= lowest.size || lay_out(graph, one.proposal->schedule, size).size > size) continue;
    lowest = {size, {*one.proposal}};
  }
  return lowest;
}

Lowest find_lowest(const Graph& graph, std::span<const Measured> proposed) {
  return Descent(graph, proposed).run();
}

}  // namespace palimpsest
