#include "checkpoint/planners/live_set_search.h"

#include "checkpoint/planning_stop.h"

#include <algorithm>
#include <limits>

namespace palimpsest {

namespace {

std::size_t hash(LiveSets::Set live) {
  live = (live ^ (live >> 31)) * 0x9e3779b97f4a7c15ull;
  live = (live ^ (live >> 29)) * 0xbf58476d1ce4e5b9ull;
  return live ^ (live >> 32);
}

}  // namespace

LiveSetSearch::LiveSetSearch(const LiveSets& sets, Bytes budget, std::size_t most_sets)
    : sets_(sets), budget_(budget), most_sets_(most_sets), extra_(sets, budget) {}

std::optional<LiveSetSearch::Found> LiveSetSearch::find_any() {
  begin(0);
  return go_on();
}

std::optional<LiveSetSearch::Found> LiveSetSearch::find_cheaper(double patience) {
  if (patience_ == 0) {
    begin(patience);
  } else {
    patience_ = patience;
    open_.clear();
    for (std::uint32_t id = 0; id < reached_.size(); ++id) {
      if (!reached_[id].done) push(id);
    }
  }
  return go_on();
}

void LiveSetSearch::begin(double patience) {
  patience_ = patience;
  below_ = std::numeric_limits<double>::infinity();
  short_by_ = std::numeric_limits<Bytes>::max() - budget_;
  drops_left_ = 200 * static_cast<std::int64_t>(most_sets_) + 1000;
  ran_out_ = false;
  reached_.clear();
  slots_.assign(1 << 12, none);
  open_.clear();
  sets_.find_rest(sets_.start(), rest_);
  reach(sets_.start(), rest_, 0, none, none);
}

std::optional<LiveSetSearch::Found> LiveSetSearch::go_on() {
  while (!open_.empty() && !ran_out_) {
    PlanningStop::check();
    std::pop_heap(open_.begin(), open_.end());
    const std::uint32_t id = open_.back().id;
    open_.pop_back();
    Reached& set = reached_[id];
    if (set.done || set.cost + set.to_go >= below_) continue;
    if ((sets_.targets() & ~set.live) == 0) {
      below_ = set.cost * (1 - 1e-12);
      return path_to(id);
    }
    sets_.find_rest(set.live, rest_);
    if (is_dominated(set)) {
      set.done = true;
      continue;
    }
    const double extra = extra_.least(set.live, rest_);
    // In a search for any order, a set with no way on within this budget still tells the next
    // budget to try.
    const bool guides = patience_ > 0 || extra < std::numeric_limits<double>::infinity();
    const double to_go = rest_.cost + (guides ? (1 - 1e-9) * extra : 0);
    if (to_go > set.to_go) {
      set.to_go = to_go;
      push(id);
      continue;
    }
    set.done = true;
    expand(id);
    ran_out_ = reached_.size() > most_sets_ || drops_left_ <= 0;
  }
  return std::nullopt;
}

void LiveSetSearch::expand(std::uint32_t id) {
  const Set live = reached_[id].live;
  const double cost = reached_[id].cost;
  for (std::uint32_t k = 0; k < sets_.nodes().size(); ++k) {
    const LiveSets::Node& node = sets_.nodes()[k];
    if ((node.reads & ~live) != 0 || (node.makes & rest_.useful & ~live) == 0) continue;
    const Set after = live | node.makes;
    const Bytes over = sets_.bytes(after) + node.workspace - budget_;
    sets_.find_rest(after, next_rest_);
    if (over <= 0) {
      reach(after, next_rest_, cost + node.cost, id, k);
      continue;
    }
    droppable_.clear();
    const Set busy = node.reads | node.makes | sets_.held();
    for (const LiveSets::Storage& storage : sets_.storages()) {
      const bool idle = (storage.values & busy) == 0;
      if ((storage.values & live) != 0 && idle) droppable_.push_back(&storage);
    }
    for (const LiveSets::Storage& taking : node.takings) {
      if ((taking.values & sets_.held()) == 0) droppable_.push_back(&taking);
    }
    const auto may_drop = [&](Set dropped) {
      if (below_ == std::numeric_limits<double>::infinity()) return true;
      return cost + node.cost + sets_.without(dropped, after, next_rest_).cost < below_;
    };
    drop_least(over, may_drop, [&](Set dropped) {
      const LiveSets::Need need = sets_.without(dropped, after, next_rest_);
      reach(after & ~dropped, need, cost + node.cost, id, k);
    });
  }
}

template <class MayDrop, class Use>
void LiveSetSearch::drop_least(Bytes over, MayDrop may_drop, Use use) {
  // In descending order of size, the last one taken is the smallest. Without it too little is
  // freed, so the set is minimal.
  std::sort(droppable_.begin(), droppable_.end(),
            [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  freed_from_.assign(droppable_.size() + 1, 0);
  for (std::size_t k = droppable_.size(); k-- > 0;) {
    freed_from_[k] = freed_from_[k + 1] + droppable_[k]->bytes;
  }
  drops_.assign(1, {0, 0, 0});
  while (!drops_.empty() && drops_left_-- > 0) {
    const auto [next, freed, dropped] = drops_.back();
    drops_.pop_back();
    if (freed >= over) {
      use(dropped);
    } else if (const Bytes short_by = over - freed - freed_from_[next]; short_by > 0) {
      short_by_ = std::min(short_by_, short_by);
    } else {
      const LiveSets::Storage& storage = *droppable_[next];
      drops_.push_back({next + 1, freed, dropped});
      const Drop more{next + 1, freed + storage.bytes, dropped | storage.values};
      // More drops only add nodes that have to run.
      if (more.freed < over && !may_drop(more.dropped)) continue;
      drops_.push_back(more);
    }
  }
}

void LiveSetSearch::reach(Set live, const LiveSets::Need& need, double cost, std::uint32_t from,
                          std::uint32_t node) {
  if (cost + need.cost >= below_) return;
  const Set before = live & need.useful;
  live = before;
  if (add_free(live, nullptr)) {
    sets_.find_rest(live, after_free_);
    live &= after_free_.useful;
  }
  if (2 * reached_.size() >= slots_.size()) grow();
  std::uint32_t& id = slots_[slot_of(live)];
  if (id == none) {
    id = static_cast<std::uint32_t>(reached_.size());
    reached_.push_back({live, before, cost, need.cost, from, node, false});
  } else {
    Reached& set = reached_[id];
    if (patience_ == 0 || set.cost <= cost) return;
    set = {live, before, cost, set.to_go, from, node, false};
  }
  push(id);
}

bool LiveSetSearch::add_free(Set& live, std::vector<NodeId>* order) const {
  const Set before = live;
  for (const std::uint32_t k : sets_.free_nodes()) {
    const LiveSets::Node& node = sets_.nodes()[k];
    if ((node.reads & ~live) != 0 || (node.makes & ~live) == 0) continue;
    if (sets_.bytes(live | node.makes) != sets_.bytes(live)) continue;
    live |= node.makes;
    if (order != nullptr) order->push_back(node.id);
  }
  return live != before;
}

void LiveSetSearch::push(std::uint32_t id) {
  const Reached& set = reached_[id];
  if (set.cost + set.to_go >= below_) return;
  open_.push_back({patience_ * set.cost + set.to_go, set.to_go, id});
  std::push_heap(open_.begin(), open_.end());
}

bool LiveSetSearch::is_dominated(const Reached& set) const {
  // Values that cannot be dropped again may be in the way.
  Set missing = rest_.useful & ~set.live & ~sets_.held();
  for (; missing != 0; missing &= missing - 1) {
    const std::uint32_t other = slots_[slot_of(set.live | (missing & -missing))];
    if (other != none && (patience_ == 0 || reached_[other].cost <= set.cost)) return true;
  }
  return false;
}

std::size_t LiveSetSearch::slot_of(Set live) const {
  std::size_t slot = hash(live) & (slots_.size() - 1);
  while (slots_[slot] != none && reached_[slots_[slot]].live != live) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void LiveSetSearch::grow() {
  slots_.assign(2 * slots_.size(), none);
  for (std::uint32_t id = 0; id < reached_.size(); ++id) slots_[slot_of(reached_[id].live)] = id;
}

LiveSetSearch::Found LiveSetSearch::path_to(std::uint32_t id) const {
  Found found{{}, reached_[id].cost};
  std::vector<std::uint32_t> path;
  for (; id != none; id = reached_[id].from) path.push_back(id);
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    const Reached& set = reached_[*step];
    if (set.from != none) found.order.push_back(sets_.nodes()[set.node].id);
    Set live = set.bare;
    add_free(live, &found.order);
  }
  return found;
}

}  // namespace palimpsest
