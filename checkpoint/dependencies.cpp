#include "checkpoint/dependencies.h"

#include <algorithm>
#include <map>

namespace palimpsest {
namespace {

/// A partition of the arena into stretches, with the last occupant of each.
class AddressOwners {
 public:
  /// Gives [begin, end) to `owner` and calls `f` on each previous owner of a part of it.
  template <class F>
  void take(Bytes begin, Bytes end, std::uint32_t owner, F f) {
    split(begin);
    split(end);
    const auto first = stretches_.lower_bound(begin);
    const auto last = stretches_.lower_bound(end);
    for (auto stretch = first; stretch != last; ++stretch) {
      if (stretch->second != none) f(stretch->second);
    }
    stretches_.erase(first, last);
    stretches_.emplace(begin, owner);
  }

 private:
  void split(Bytes at) {
    const auto next = stretches_.upper_bound(at);
    const std::uint32_t owner = next == stretches_.begin() ? none : std::prev(next)->second;
    stretches_.emplace(at, owner);
  }

  std::map<Bytes, std::uint32_t> stretches_;
};

}  // namespace

class Dependencies::Builder {
 public:
  Builder(Dependencies& dependencies, const Graph& graph, const Schedule& schedule,
          const Layout& layout)
      : dependencies_(dependencies),
        graph_(graph),
        schedule_(schedule),
        layout_(layout),
        storages_(graph.value_count()),
        live_(graph.value_count()),
        closer_(layout.intervals.size(), none),
        taken_over_(layout.intervals.size()) {}

  void build() {
    const std::vector<Step>& steps = schedule_.steps;
    dependencies_.steps_.resize(steps.size());
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      if (graph_.is_present(value)) hold(value, none);
    }
    while (next_ < layout_.intervals.size() && opens_at_start(layout_.intervals[next_])) {
      occupy(next_++, none);
    }
    for (std::uint32_t k = 0; k < steps.size(); ++k) {
      dependencies_.steps_[k].first_opened =
          static_cast<std::uint32_t>(dependencies_.opened_.size());
      if (steps[k].kind == Step::Kind::compute) {
        compute(k, steps[k].id);
      } else {
        drop(k, steps[k].id);
      }
    }
    link();
  }

 private:
  struct Storage {
    std::uint32_t writer = none;  // last step that wrote it
    std::uint32_t interval = none;
    std::uint32_t closer = none;         // last drop that left it empty
    std::uint32_t holders = 0;           // live values in it
    std::vector<std::uint32_t> readers;  // since it was written
  };

  bool opens_at_start(const Interval& interval) const {
    return interval.storage != Interval::workspace && storages_[interval.storage].holders > 0 &&
           storages_[interval.storage].interval == none && interval.first == 0;
  }

  void hold(ValueId value, std::uint32_t step) {
    if (live_[value]) return;
    live_[value] = true;
    Storage& storage = storages_[graph_.storage(value)];
    if (storage.holders++ == 0) {
      if (step != none) depend(step, storage.closer);  // a storage has one interval at a time
      storage.writer = step;
      storage.interval = none;
      storage.readers.clear();
    }
  }

  void depend(std::uint32_t step, std::uint32_t on) {
    if (on != none && on != step) edges_.push_back({on, step});
  }

  /// Opens interval `index` at `step`, after the last occupants of its addresses.
  void occupy(std::uint32_t index, std::uint32_t step) {
    const Interval& interval = layout_.intervals[index];
    addresses_.take(interval.offset, interval.offset + interval.bytes, index,
                    [&](std::uint32_t before) {
                      if (before == interval.takes_over) return take_over(before, step);
                      internal_check(closer_[before] != none, "a layout's intervals overlap");
                      depend(step, closer_[before]);
                    });
    if (interval.storage == Interval::workspace) {
      closer_[index] = step;
      dependencies_.steps_[step].workspace = index;
    } else {
      storages_[interval.storage].interval = index;
      if (step != none) dependencies_.opened_.push_back(index);
    }
  }

  /// All other readers of the storage must have read it before.
  void take_over(std::uint32_t index, std::uint32_t step) {
    const Storage& storage = storages_[layout_.intervals[index].storage];
    for (const std::uint32_t reader : storage.readers) depend(step, reader);
    depend(step, storage.writer);
    taken_over_[index] = true;
  }

  void compute(std::uint32_t k, NodeId node) {
    for (const ValueId input : graph_.inputs(node)) {
      if (graph_.is_source_value(input)) continue;
      Storage& storage = storages_[graph_.storage(input)];
      depend(k, storage.writer);
      storage.readers.push_back(k);
    }
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      const ValueId output = graph_.first_output(node) + i;
      Storage& storage = storages_[graph_.storage(output)];
      const bool view = graph_.storage(output) != output;
      if (!view && storage.holders > 0) {  // written again in place: no reader may be running
        for (const std::uint32_t reader : storage.readers) depend(k, reader);
        depend(k, storage.writer);
        storage.readers.clear();
        storage.writer = k;
      }
      hold(output, k);
    }
    const std::vector<Interval>& intervals = layout_.intervals;
    while (next_ < intervals.size() && intervals[next_].first == k) occupy(next_++, k);
  }

  void drop(std::uint32_t k, ValueId value) {
    live_[value] = false;
    Storage& storage = storages_[graph_.storage(value)];
    for (const std::uint32_t reader : storage.readers) depend(k, reader);
    depend(k, storage.writer);
    if (--storage.holders > 0) {
      storage.readers.assign(1, k);  // the drop stands for the readers it waited for
      return;
    }
    storage.closer = k;
    if (storage.interval == none || taken_over_[storage.interval]) return;  // no bytes of its own
    dependencies_.steps_[k].closed = storage.interval;
    closer_[storage.interval] = k;
  }

  /// Turns the edges into rows of successors.
  void link() {
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    dependencies_.successors_.reserve(edges_.size());
    std::size_t edge = 0;
    for (std::uint32_t k = 0; k < dependencies_.step_count(); ++k) {
      dependencies_.steps_[k].first_successor =
          static_cast<std::uint32_t>(dependencies_.successors_.size());
      for (; edge < edges_.size() && edges_[edge].first == k; ++edge) {
        dependencies_.successors_.push_back(edges_[edge].second);
        ++dependencies_.steps_[edges_[edge].second].predecessors;
      }
    }
  }

  Dependencies& dependencies_;
  const Graph& graph_;
  const Schedule& schedule_;
  const Layout& layout_;
  std::vector<Storage> storages_;
  std::vector<bool> live_;
  std::vector<std::uint32_t> closer_;  // by interval, the step that ends it
  std::vector<bool> taken_over_;       // by interval
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  AddressOwners addresses_;
  std::uint32_t next_ = 0;  // first interval not opened yet
};

Dependencies::Dependencies(const Graph& graph, const Schedule& schedule, const Layout& layout) {
  Builder(*this, graph, schedule, layout).build();
}

std::span<const std::uint32_t> Dependencies::successors(std::uint32_t step) const {
  const std::size_t first = steps_[step].first_successor;
  const std::size_t last =
      step + 1 < step_count() ? steps_[step + 1].first_successor : successors_.size();
  return {successors_.data() + first, last - first};
}

std::span<const std::uint32_t> Dependencies::opened(std::uint32_t step) const {
  const std::size_t first = steps_[step].first_opened;
  const std::size_t last = step + 1 < step_count() ? steps_[step + 1].first_opened : opened_.size();
  return {opened_.data() + first, last - first};
}

}  // namespace palimpsest
