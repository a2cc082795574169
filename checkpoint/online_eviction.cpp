#include "checkpoint/online_eviction.h"

#include <algorithm>
#include <utility>

#include "checkpoint/layout.h"

namespace palimpsest {

namespace {

/// Separates two moments between which only nodes of no cost ran.
constexpr double tick = 1e-9;

/// Neighbours on each side that a price looks at.
constexpr int most_neighbours = 16;

/// Without a limit, two inputs could evict each other for ever.
constexpr int most_unpinnings = 4;

}  // namespace

OnlineEviction::OnlineEviction(const Graph& graph, Bytes budget, Host& host)
    : graph_(graph), budget_(budget), host_(host) {}

Bytes OnlineEviction::bytes(ValueId root) const { return laid_out(graph_.bytes(root)); }

bool OnlineEviction::is_live(ValueId value) const {
  return graph_.is_source_value(value) || (value < live_.size() && live_[value]);
}

void OnlineEviction::learn(NodeId end) {
  if (end <= known_) return;
  const ValueId values = graph_.first_output(end - 1) + graph_.output_count(end - 1);
  live_.resize(values);
  storages_.resize(values);
  live_besides_.resize(values);
  for (; known_ < end; ++known_) {
    for (const ValueId input : graph_.inputs(known_)) {
      const ValueId root = graph_.storage(input);
      if (graph_.is_source_value(root)) continue;
      readers_.push_back({known_, storages_[root].readers});
      storages_[root].readers = static_cast<std::uint32_t>(readers_.size() - 1);
    }
  }
}

void OnlineEviction::set_live(ValueId value) {
  learn(graph_.producer(value) + 1);
  revive(value);
  offer(graph_.storage(value));
}

void OnlineEviction::set_dropped() {
  learn(graph_.node_count());
  for (ValueId root = 0; root < storages_.size(); ++root) {
    const bool owns = graph_.storage(root) == root && !graph_.is_source_value(root);
    if (owns && storages_[root].holders == 0) storages_[root].component = 0;
  }
  find_components();
}

std::optional<OnlineEviction::Shortage> OnlineEviction::compute(NodeId node) {
  learn(node + 1);
  return run(node, graph_.inputs(node));
}

std::optional<OnlineEviction::Shortage> OnlineEviction::require(std::span<const ValueId> values) {
  for (const ValueId value : values) learn(graph_.producer(value) + 1);
  return run(none, values);
}

void OnlineEviction::release(ValueId root) {
  if (graph_.is_source_value(root)) return;
  storages_[root].released = true;
  if (storages_[root].holders > 0) evict(root);
}

// Steps in progress ---------------------------------------------------------------------------

std::optional<OnlineEviction::Shortage> OnlineEviction::run(NodeId node,
                                                            std::span<const ValueId> inputs) {
  std::optional<Shortage> shortage;
  unpinnings_ = 0;
  try {
    stack_.push_back({node, inputs, pins_.size()});
    while (!stack_.empty() && !shortage) {
      Frame& frame = stack_.back();
      if (!gather(frame)) {
        const NodeId before = graph_.producer(frame.inputs[frame.at]);
        stack_.push_back({before, graph_.inputs(before), pins_.size()});
        continue;
      }
      shortage = finish(frame);
      unpin_from(frame.first_pin);
      stack_.pop_back();
    }
  } catch (...) {
    leave();
    throw;
  }
  leave();
  return shortage;
}

/// False when the current input has to be computed first. Live inputs are held meanwhile.
bool OnlineEviction::gather(Frame& frame) {
  if (frame.at == 0) {
    for (const ValueId input : frame.inputs) {
      if (is_live(input)) pin(input);
    }
  }
  for (; frame.at < frame.inputs.size(); ++frame.at) {
    const ValueId input = frame.inputs[frame.at];
    if (!is_live(input) && !recover(input)) return false;
    pin(input);
  }
  return true;
}

std::optional<OnlineEviction::Shortage> OnlineEviction::finish(const Frame& frame) {
  if (frame.node == none) return take_over(frame);
  const ValueId first = graph_.first_output(frame.node);
  const ValueId last = first + graph_.output_count(frame.node);
  Bytes extra = laid_out(graph_.workspace(frame.node));
  for (ValueId output = first; output < last; ++output) extra += bytes(output);
  while (!make_room(extra)) {
    const Shortage shortage{frame.node, pinned_ + extra};
    if (!unpin_waiting()) return shortage;
  }
  peak_ = std::max(peak_, bytes_ + extra);
  host_.compute(frame.node);
  now_ += graph_.cost(frame.node) + tick;
  for (ValueId output = first; output < last; ++output) {
    revive(output);
    pin(output);
  }
  return {};
}

/// A requested storage that is lent stays live, so it must come into the budget.
std::optional<OnlineEviction::Shortage> OnlineEviction::take_over(const Frame& frame) {
  for (const ValueId value : frame.inputs) {
    const ValueId root = graph_.storage(value);
    if (!storages_[root].lent) continue;
    if (!make_room(bytes(root))) {
      return Shortage{graph_.producer(root), pinned_ + bytes(root)};
    }
    storages_[root].lent = false;
    bytes_ += bytes(root);
    pinned_ += bytes(root);
  }
  return {};
}

void OnlineEviction::leave() {
  stack_.clear();
  unpin_from(0);
  for (const ValueId root : lent_) {
    if (storages_[root].lent) evict(root);
  }
  lent_.clear();
}

void OnlineEviction::pin(ValueId value) {
  const ValueId root = graph_.storage(value);
  if (graph_.is_source_value(root)) return;
  pins_.push_back(root);
  Storage& storage = storages_[root];
  if (storage.pins++ > 0) return;
  queue_.erase(root);
  if (!storage.lent) pinned_ += bytes(root);
}

void OnlineEviction::unpin_from(std::size_t first) {
  for (; pins_.size() > first; pins_.pop_back()) {
    const ValueId root = pins_.back();
    Storage& storage = storages_[root];
    if (--storage.pins > 0) continue;
    storage.last_use = now_;
    if (!storage.lent) pinned_ -= bytes(root);
    offer(root);
  }
}

// Memory --------------------------------------------------------------------------------------

bool OnlineEviction::make_room(Bytes extra) {
  if (pinned_ + extra > budget_) lend_pinned();
  if (pinned_ + extra > budget_) return false;
  while (bytes_ + extra > budget_) {
    const ValueId root = cheapest();
    internal_check(root != none, "live bytes are neither pinned nor offered");
    evict(root);
  }
  return true;
}

void OnlineEviction::lend_pinned() {
  for (const ValueId root : pins_) {
    Storage& storage = storages_[root];
    if (storage.lent) continue;
    if (!host_.is_held_elsewhere(storage.live, storage.holders)) continue;
    storage.lent = true;
    lent_.push_back(root);
    bytes_ -= bytes(root);
    pinned_ -= bytes(root);
  }
}

/// False when only the top step holds anything, or when releasing has not helped so far.
bool OnlineEviction::unpin_waiting() {
  const auto waiting = static_cast<std::ptrdiff_t>(stack_.back().first_pin);
  if (waiting == 0 || unpinnings_ == most_unpinnings) return false;
  ++unpinnings_;
  std::rotate(pins_.begin(), pins_.begin() + waiting, pins_.end());
  unpin_from(pins_.size() - static_cast<std::size_t>(waiting));
  for (Frame& frame : stack_) frame.first_pin = frame.at = 0;
  return true;
}

ValueId OnlineEviction::cheapest() {
  constexpr int most_returns = 8;
  for (int returns = 0;; ++returns) {
    const ValueId root = queue_.least(now_);
    if (root == none || returns == most_returns) return root;
    const double before = queue_.price(root);
    offer(root);
    if (queue_.price(root) <= before) return root;
  }
}

void OnlineEviction::revive(ValueId value) {
  if (is_live(value)) return;
  live_[value] = true;
  const ValueId root = graph_.storage(value);
  if (graph_.is_source_value(root)) return;
  Storage& storage = storages_[root];
  live_besides_[value] = std::exchange(storage.live, value);
  if (storage.holders++ > 0) return;
  bytes_ += bytes(root);
  storage.last_use = now_;
  part(storage);
  offer_neighbours(root);
}

/// True when the value is live again. A view of a recovered storage costs nothing to compute.
bool OnlineEviction::recover(ValueId value) {
  const ValueId root = graph_.storage(value);
  if (graph_.is_source_value(root) || storages_[root].holders > 0) return false;
  if (!host_.recover(root)) return false;
  revive(root);
  storages_[root].lent = true;
  lent_.push_back(root);
  bytes_ -= bytes(root);
  return value == root;
}

void OnlineEviction::evict(ValueId root) {
  Storage& storage = storages_[root];
  queue_.erase(root);
  for (; storage.live != none; storage.live = live_besides_[storage.live]) {
    live_[storage.live] = false;
    host_.drop(storage.live);
  }
  storage.holders = 0;
  if (!storage.lent) bytes_ -= bytes(root);
  storage.lent = false;
  if (components_.size() > 2 * storages_.size() + 64) {
    storage.component = 0;
    find_components();
  } else {
    join(root);
  }
  offer_neighbours(root);
}

void OnlineEviction::offer(ValueId root) {
  const Storage& storage = storages_[root];
  if (graph_.is_source_value(root) || storage.holders == 0 || storage.pins > 0) return;
  if (storage.lent || bytes(root) == 0) return;
  queue_.put(root, price(root), storage.released ? 0 : storage.last_use);
}

/// Updates the prices around a storage that was dropped or made.
void OnlineEviction::offer_neighbours(ValueId root) {
  for_each_neighbour(root, [&](ValueId neighbour) { offer(neighbour); });
}

// Dropped storages ----------------------------------------------------------------------------

bool OnlineEviction::is_dropped(ValueId root) const { return storages_[root].component != none; }

template <class F>
void OnlineEviction::for_each_neighbour(ValueId root, F f) const {
  int count = 0;
  for (const ValueId input : graph_.inputs(graph_.producer(root))) {
    if (count++ == most_neighbours) break;
    f(graph_.storage(input));
  }
  count = 0;
  for (std::uint32_t at = storages_[root].readers; at != none; at = readers_[at].before) {
    const NodeId node = readers_[at].node;
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      if (count++ == most_neighbours) return;
      const ValueId after = graph_.storage(graph_.first_output(node) + i);
      if (after != root) f(after);
    }
  }
}

double OnlineEviction::price(ValueId root) {
  seen_.clear();
  double seconds = graph_.cost(graph_.producer(root));
  for_each_neighbour(root, [&](ValueId neighbour) {
    if (!is_dropped(neighbour)) return;
    const std::uint32_t component = find(storages_[neighbour].component);
    if (std::find(seen_.begin(), seen_.end(), component) != seen_.end()) return;
    seen_.push_back(component);
    seconds += components_[component].seconds;
  });
  return seconds / static_cast<double>(bytes(root));
}

std::uint32_t OnlineEviction::find(std::uint32_t component) {
  while (components_[component].parent != component) {
    std::uint32_t& parent = components_[component].parent;
    component = parent = components_[parent].parent;
  }
  return component;
}

/// Unites a dropped storage with the dropped storages around it.
void OnlineEviction::join(ValueId root) {
  const auto own = static_cast<std::uint32_t>(components_.size());
  storages_[root].component = own;
  components_.push_back({own, graph_.cost(graph_.producer(root))});
  for_each_neighbour(root, [&](ValueId neighbour) {
    if (!is_dropped(neighbour)) return;
    const std::uint32_t mine = find(own);
    const std::uint32_t other = find(storages_[neighbour].component);
    if (mine == other) return;
    // A hash of the index serves as a random rank: amortised O(log n).
    const auto rank = [](std::uint32_t position) { return position * 0x9e3779b1u; };
    const auto [child, parent] =
        rank(mine) < rank(other) ? std::pair(mine, other) : std::pair(other, mine);
    components_[child].parent = parent;
    components_[parent].seconds += components_[child].seconds;
  });
}

void OnlineEviction::part(Storage& storage) {
  if (storage.component == none) return;
  const auto root = static_cast<ValueId>(&storage - storages_.data());
  double& seconds = components_[find(storage.component)].seconds;
  seconds = std::max(0.0, seconds - graph_.cost(graph_.producer(root)));
  storage.component = none;
}

void OnlineEviction::find_components() {
  components_.clear();
  std::vector<ValueId> dropped;
  for (ValueId root = 0; root < storages_.size(); ++root) {
    if (!is_dropped(root)) continue;
    dropped.push_back(root);
    storages_[root].component = none;
  }
  for (const ValueId root : dropped) join(root);
}

}  // namespace palimpsest
