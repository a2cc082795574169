#include "checkpoint/planners/retention.h"

#include <algorithm>
#include <bit>

#include "checkpoint/layout.h"
#include "checkpoint/planning_stop.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

/// A segment tree for "add to a range" and "maximum of a range", O(log n) each.
class Heights {
 public:
  explicit Heights(const std::vector<Bytes>& heights)
      : size_(heights.size()), largest_(2 * size_), added_(2 * size_) {
    std::copy(heights.begin(), heights.end(),
              largest_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (std::size_t p = size_; p-- > 1;) combine(p);
  }

  void add(std::size_t begin, std::size_t end, Bytes amount) {
    for_each_part(begin, end, [&](std::size_t p) { raise(p, amount); });
    for (std::size_t leaf : {begin + size_, end - 1 + size_}) {
      while ((leaf >>= 1) > 0) combine(leaf);
    }
  }

  Bytes largest(std::size_t begin, std::size_t end) {
    for (const std::size_t leaf : {begin + size_, end - 1 + size_}) {
      for (int level = std::bit_width(leaf) - 1; level > 0; --level) push(leaf >> level);
    }
    Bytes result = 0;
    for_each_part(begin, end, [&](std::size_t p) { result = std::max(result, largest_[p]); });
    return result;
  }

 private:
  template <class F>
  void for_each_part(std::size_t begin, std::size_t end, F f) {
    for (begin += size_, end += size_; begin < end; begin >>= 1, end >>= 1) {
      if (begin & 1) f(begin++);
      if (end & 1) f(--end);
    }
  }
  void raise(std::size_t p, Bytes amount) {
    largest_[p] += amount;
    added_[p] += amount;
  }
  void combine(std::size_t p) {
    largest_[p] = std::max(largest_[2 * p], largest_[2 * p + 1]) + added_[p];
  }
  void push(std::size_t p) {
    if (added_[p] == 0) return;
    raise(2 * p, added_[p]);
    raise(2 * p + 1, added_[p]);
    added_[p] = 0;
  }

  std::size_t size_;
  std::vector<Bytes> largest_;
  std::vector<Bytes> added_;  // to all leaves below, not propagated yet
};

/// Positions at which a storage is not live, between two at which it is.
struct Gap {
  ValueId root;
  std::uint32_t begin, end;
};

/// A compute step that is unnecessary if storages are held over some gaps.
struct Recomputation {
  std::uint32_t position;
  std::uint32_t first_gap, gap_count;
  double worth;
};

struct Survey {
  std::vector<Bytes> heights;  ///< by position
  std::vector<Recomputation> found;
  std::vector<Gap> gaps;

  std::span<const Gap> gaps_of(const Recomputation& again) const {
    return std::span(gaps).subspan(again.first_gap, again.gap_count);
  }
};

Survey survey(const Graph& graph, const std::vector<NodeId>& order) {
  Survey result;
  result.heights.reserve(order.size());
  const Schedule schedule = drop_after_last_use(graph, order);
  std::vector<bool> live(graph.value_count());
  std::vector<std::uint32_t> holders(graph.value_count());
  std::vector<std::uint32_t> gone(graph.value_count(), none);  // position of the last drop
  std::vector<bool> unread(graph.value_count());               // made by a step that may be removed
  std::vector<bool> taken(graph.value_count());  // by root: taken over by the step before the drop
  std::vector<ValueId> candidates;               // for taking over
  Bytes bytes = 0;
  const auto revive = [&](ValueId value) {
    const ValueId root = graph.storage(value);
    live[value] = true;
    if (holders[root]++ == 0) bytes += laid_out(graph.bytes(root));
  };
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (graph.is_present(value)) revive(value);
  }
  for (std::size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step step = schedule.steps[k];
    const auto position = static_cast<std::uint32_t>(result.heights.size());
    if (step.kind == Step::Kind::drop) {
      const ValueId root = graph.storage(step.id);
      live[step.id] = false;
      // If the value is held, its storage is not taken over.
      if (!unread[step.id]) gone[step.id] = taken[root] ? position - 1 : position;
      if (--holders[root] > 0) continue;
      taken[root] = false;
      bytes -= laid_out(graph.bytes(root));
      continue;
    }
    const std::size_t first_gap = result.gaps.size();
    const ValueId first = graph.first_output(step.id);
    const ValueId end = first + graph.output_count(step.id);
    std::fill(unread.begin() + first, unread.begin() + end, false);
    candidates.clear();
    for (ValueId output = first; output < end; ++output) {
      const ValueId root = graph.possible_donor(output);
      if (root != none && holders[output] == 0) candidates.push_back(root);
    }
    double area = 0;
    bool possible = graph.cost(step.id) > 0;
    for (ValueId output = first; output < end; ++output) {
      if (live[output]) continue;
      revive(output);
      // An output without readers is dropped at once, in one of the next steps.
      bool read = true;
      for (std::size_t next = k + 1; next < schedule.steps.size() && read; ++next) {
        if (schedule.steps[next].kind == Step::Kind::compute) break;
        read = schedule.steps[next].id != output;
      }
      unread[output] = !read;
      if (!read) continue;
      possible = possible && gone[output] != none;
      if (!possible) continue;
      result.gaps.push_back({graph.storage(output), gone[output], position});
      area += static_cast<double>(laid_out(graph.bytes(graph.storage(output)))) *
              (position - gone[output]);
    }
    const std::size_t gaps = result.gaps.size() - first_gap;
    if (possible && gaps > 0) {
      result.found.push_back({position, static_cast<std::uint32_t>(first_gap),
                              static_cast<std::uint32_t>(gaps), graph.cost(step.id) / (area + 1)});
    } else {
      result.gaps.resize(first_gap);
      // A step that stays could also hold outputs that have no readers now.
      std::fill(unread.begin() + first, unread.begin() + end, false);
    }
    result.heights.push_back(bytes + laid_out(graph.workspace(step.id)));
    for (const ValueId root : candidates) {
      if (!is_given_up(graph, schedule.steps, k, root, holders[root])) continue;
      taken[root] = true;
      result.heights.back() -= laid_out(graph.bytes(root));
    }
  }
  return result;
}

}  // namespace

std::vector<NodeId> hold_instead(const Graph& graph, std::vector<NodeId> order, Bytes level) {
  constexpr int rounds = 4;
  for (int round = 0; round < rounds; ++round) {
    PlanningStop::check();
    Survey now = survey(graph, order);
    if (now.found.empty()) break;
    std::stable_sort(now.found.begin(), now.found.end(),
                     [](const auto& a, const auto& b) { return a.worth > b.worth; });
    Heights heights(now.heights);
    std::vector<bool> removed(order.size());
    bool any = false;
    for (const Recomputation& again : now.found) {
      const std::span<const Gap> gaps = now.gaps_of(again);
      std::size_t held = 0;
      for (const auto& [root, begin, end] : gaps) {
        const Bytes bytes = laid_out(graph.bytes(root));
        if (begin != end && heights.largest(begin, end) + bytes > level) break;
        if (begin != end) heights.add(begin, end, bytes);
        ++held;
      }
      if (held == gaps.size()) {
        removed[again.position] = any = true;
        continue;
      }
      while (held-- > 0) {
        const auto& [root, begin, end] = gaps[held];
        if (begin != end) heights.add(begin, end, -laid_out(graph.bytes(root)));
      }
    }
    if (!any) break;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (!removed[k]) order[kept++] = order[k];
    }
    order.resize(kept);
    order = without_useless(graph, order);
  }
  return order;
}

}  // namespace palimpsest
