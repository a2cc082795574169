#include "checkpoint/roomy_layout.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

#include "checkpoint/lanes.h"

namespace palimpsest {
namespace {

/// A reduction of time, or a share of all time, that is worth the bytes and the search.
constexpr double noticeable = 0.02;
constexpr std::array lane_counts{64, 8, 2};

/// True when steps whose kernels leave other threads idle take a noticeable share of the time.
/// False for many steps, where looking for room takes longer than it is worth.
bool may_gain(const Graph& graph, const Schedule& schedule) {
  constexpr std::size_t most_steps = 50'000;
  if (!graph.is_parallel() || schedule.steps.size() > most_steps) return false;
  double all = 0;
  double on_one_lane = 0;
  int count = 0;
  for (const Step& step : schedule.steps) {
    const double seconds = seconds_on_one_thread(graph, step);
    all += seconds;
    if (!runs_on_one_lane(graph, step)) continue;
    on_one_lane += seconds;
    ++count;
  }
  return count > 1 && on_one_lane > noticeable * all;
}

bool has_operations_of_users(const Graph& graph) {
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (graph.is_opaque(node)) return true;
  }
  return false;
}

/// A layout with each interval in its own place, so that steps wait for data only.
Layout without_reuse(Layout layout) {
  layout.size = 0;
  for (Interval& interval : layout.intervals) {
    interval.takes_over = none;
    interval.offset = layout.size;
    layout.size += laid_out(interval.bytes);
  }
  return layout;
}

/// Seconds on different numbers of threads, added up.
double seconds_of(const Graph& graph, const Schedule& schedule, const Dependencies& dependencies) {
  double seconds = 0;
  for (const int lanes : lane_counts) {
    seconds += times_on(graph, schedule, dependencies, lanes).all;
  }
  return seconds;
}

double seconds_of(const Graph& graph, const Schedule& schedule, const Layout& layout) {
  return seconds_of(graph, schedule, Dependencies(graph, schedule, layout));
}

/// Moves intervals of a layout so that steps can run at the given times.
class Mover {
 public:
  Mover(const Graph& graph, const Schedule& schedule, const StepTimes& times, const Layout& layout,
        Bytes most)
      : graph_(graph), schedule_(schedule), times_(times), layout_(layout), most_(most) {}

  Layout moved() && {
    constexpr int most_rounds = 2;  // a move may reveal other intervals in its place
    constexpr std::size_t most_work = 5'000'000;
    find_units();
    std::size_t moves = most_work / std::max<std::size_t>(layout_.intervals.size(), 1);
    bool any = true;
    for (int round = 0; round < most_rounds && any; ++round) {
      any = false;
      for (const Blocked& blocked : find_blocked()) {
        if (moves == 0) break;
        --moves;
        any = (blocked.taken ? move_apart(blocked.interval) : move(unit_of_[blocked.interval])) ||
              any;
      }
      note_offsets();
    }
    return std::move(layout_);
  }

 private:
  /// An interval and those that take over from it, which share one place.
  struct Unit {
    std::uint32_t first, last;  // steps
    double begin, end;          // seconds
    Bytes bytes;
    Bytes offset;
  };
  /// An interval that opens later than it could, because of another one in its place.
  struct Blocked {
    std::uint32_t interval;
    double delay;
    bool taken;  // the other one is the interval that it takes over
  };

  auto offset_of() const {
    return [this](std::uint32_t unit) { return units_[unit].offset; };
  }

  void find_units() {
    units_.clear();
    unit_of_.clear();
    for (const Interval& one : layout_.intervals) {
      if (one.takes_over == none) {
        unit_of_.push_back(static_cast<std::uint32_t>(units_.size()));
        units_.push_back({one.first, one.last, times_.begin[one.first], times_.end[one.last],
                          laid_out(one.bytes), one.offset});
      } else {
        unit_of_.push_back(unit_of_[one.takes_over]);
        Unit& unit = units_[unit_of_.back()];
        unit.last = std::max(unit.last, one.last);
        unit.end = std::max(unit.end, times_.end[one.last]);
      }
    }
    by_offset_.resize(units_.size());
    std::iota(by_offset_.begin(), by_offset_.end(), 0u);
    std::ranges::stable_sort(by_offset_, {}, offset_of());
  }

  /// In order of delay per byte, most first.
  std::vector<Blocked> find_blocked() const {
    const Dependencies dependencies(graph_, schedule_, layout_);
    std::map<std::uint32_t, Blocked> blocked;
    for (std::uint32_t step = 0; step < dependencies.step_count(); ++step) {
      for (const std::uint32_t next : dependencies.successors(step)) {
        const double delay = times_.end[step] - times_.begin[next];
        if (delay <= 0) continue;
        const auto look = [&](std::uint32_t interval) {
          if (!blocks(dependencies, step, interval)) return;
          Blocked& known = blocked.try_emplace(interval, Blocked{interval, 0, false}).first->second;
          known.delay = std::max(known.delay, delay);
          known.taken = layout_.intervals[interval].takes_over != none;
        };
        std::ranges::for_each(dependencies.opened(next), look);
        if (dependencies.workspace(next) != none) look(dependencies.workspace(next));
      }
    }
    std::vector<Blocked> list;
    for (const auto& [interval, one] : blocked) list.push_back(one);
    const auto delay_per_byte = [&](const Blocked& one) {
      return one.delay / static_cast<double>(layout_.intervals[one.interval].bytes);
    };
    std::ranges::stable_sort(list, std::greater(), delay_per_byte);
    return list;
  }

  /// True when `step` has to end before `interval` can open.
  bool blocks(const Dependencies& dependencies, std::uint32_t step, std::uint32_t interval) const {
    const Step& action = schedule_.steps[step];
    const Interval& opened = layout_.intervals[interval];
    if (opened.takes_over != none) {
      const ValueId storage = layout_.intervals[opened.takes_over].storage;
      const auto is_there = [&](ValueId value) { return graph_.storage(value) == storage; };
      return action.kind == Step::Kind::drop
                 ? is_there(action.id)
                 : std::ranges::any_of(graph_.inputs(action.id), is_there);
    }
    const bool is_drop = action.kind == Step::Kind::drop;
    const std::uint32_t ended = is_drop ? dependencies.closed(step) : dependencies.workspace(step);
    if (ended == none) return false;
    const Interval& before = layout_.intervals[ended];
    return before.offset < opened.offset + opened.bytes &&
           opened.offset < before.offset + before.bytes;
  }

  /// True when two units must not share bytes: they overlap in schedule order or at the given
  /// times.
  static bool meet(const Unit& a, const Unit& b) {
    if (a.last < b.first) return a.end > b.begin;
    if (b.last < a.first) return b.end > a.begin;
    return true;
  }

  /// Moves a unit to a place where it blocks nothing and nothing blocks it. False when that takes
  /// too many bytes.
  bool move(std::uint32_t moved) {
    Unit& unit = units_[moved];
    Bytes offset = 0;
    for (const std::uint32_t other : by_offset_) {
      const Unit& one = units_[other];
      if (one.offset - offset >= unit.bytes) break;
      if (one.offset + one.bytes <= offset || other == moved || !meet(one, unit)) continue;
      offset = one.offset + one.bytes;
      if (offset + unit.bytes > most_) return false;
    }
    if (offset + unit.bytes > most_ || offset == unit.offset) return false;
    by_offset_.erase(std::ranges::find(by_offset_, moved));
    unit.offset = offset;
    by_offset_.insert(std::ranges::upper_bound(by_offset_, offset, {}, offset_of()), moved);
    layout_.size = std::max(layout_.size, offset + unit.bytes);
    return true;
  }

  void note_offsets() {
    for (std::size_t i = 0; i < unit_of_.size(); ++i) {
      layout_.intervals[i].offset = units_[unit_of_[i]].offset;
    }
  }

  /// Moves an interval away from the one that it takes over.
  bool move_apart(std::uint32_t interval) {
    note_offsets();
    const std::uint32_t before = layout_.intervals[interval].takes_over;
    layout_.intervals[interval].takes_over = none;
    find_units();
    if (move(unit_of_[interval])) return true;
    layout_.intervals[interval].takes_over = before;
    find_units();
    return false;
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const StepTimes& times_;
  Layout layout_;
  Bytes most_;
  std::vector<Unit> units_;
  std::vector<std::uint32_t> unit_of_;    // by interval
  std::vector<std::uint32_t> by_offset_;  // units
};

}  // namespace

std::optional<Layout> roomy_layout(const Graph& graph, const Schedule& schedule,
                                   const Layout& layout, Bytes most) {
  if (!may_gain(graph, schedule)) return {};
  const Dependencies data(graph, schedule, without_reuse(layout));
  const double least = seconds_of(graph, schedule, data);
  double enough = (1 - noticeable) * seconds_of(graph, schedule, layout);
  std::optional<Layout> best;
  for (const int lanes : lane_counts) {
    if (least > enough) break;
    const StepTimes times = times_on(graph, schedule, data, lanes);
    Layout moved = Mover(graph, schedule, times, layout, most).moved();
    const double seconds = seconds_of(graph, schedule, moved);
    if (seconds > enough) continue;
    best = std::move(moved);
    enough = (1 - noticeable) * seconds;
  }
  return best;
}

bool may_room_pay_at_once(const Graph& graph, const Schedule& schedule, double seconds) {
  constexpr double seconds_of_step = 1e-5;
  return seconds > seconds_of_step * static_cast<double>(schedule.steps.size()) ||
         has_operations_of_users(graph);
}

Bytes with_room(const Graph& graph, Bytes packed) {
  constexpr Bytes little = 1_MiB;
  const Bytes tenth = packed / 10;
  return packed + (has_operations_of_users(graph) ? std::max(tenth, little) : tenth);
}

}  // namespace palimpsest
