#include "checkpoint/reorder.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

class Reordering {
 public:
  explicit Reordering(const Graph& graph)
      : graph_(graph),
        order_(graph.needed_nodes()),
        position_(graph.node_count(), none),
        is_target_(graph.value_count()),
        readers_(graph.value_count()),
        users_(graph.value_count()) {
    for (const ValueId target : graph.targets()) is_target_[graph.storage(target)] = true;
    for (std::uint32_t k = 0; k < order_.size(); ++k) {
      const NodeId node = order_[k];
      position_[node] = k;
      for (const ValueId input : graph.inputs(node)) {
        readers_[input].push_back(node);
        use(graph.storage(input), node);
      }
      for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
        use(graph.storage(graph.first_output(node) + i), node);
      }
    }
    // Bounds the work, counted in positions that nodes move.
    left_ = 1'000'000 + 300 * static_cast<std::int64_t>(order_.size());
  }

  const std::vector<NodeId>& order() const { return order_; }

  /// True when something moved.
  bool round() {
    bool moved = false;
    const std::vector<NodeId> before = order_;
    for (auto node = before.rbegin(); node != before.rend(); ++node) moved |= delay(*node);
    for (const NodeId node : std::vector<NodeId>(order_)) moved |= hasten(node);
    return moved && left_ > 0;
  }

 private:
  using Position = std::int64_t;
  /// Moving past `at` frees `bytes` less.
  struct Loss {
    Position at;
    Bytes bytes;
  };

  void use(ValueId root, NodeId node) {
    if (users_[root].empty() || users_[root].back() != node) users_[root].push_back(node);
  }

  /// Position of the last user of a storage other than `node`: −1 when there is none, the end when
  /// the storage stays.
  Position last_other(ValueId root, NodeId node) const {
    constexpr std::size_t few = 64;  // scanning many readers for each of them takes too long
    const auto end = static_cast<Position>(order_.size());
    if (is_target_[root] || users_[root].size() > few) return end;
    if (graph_.is_source(graph_.producer(root))) return end;
    Position last = -1;
    for (const NodeId user : users_[root]) {
      if (user == node) continue;
      last = std::max<Position>(last, position_[user]);
    }
    return last;
  }

  std::vector<ValueId> storages_of(NodeId node, bool made) const {
    std::vector<ValueId> roots;
    const auto add = [&](ValueId value) {
      const ValueId root = graph_.storage(value);
      const bool makes = graph_.producer(root) == node;
      if (makes == made && graph_.bytes(root) > 0) roots.push_back(root);
    };
    for (const ValueId input : graph_.inputs(node)) add(input);
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i)
      add(graph_.first_output(node) + i);
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    return roots;
  }

  Bytes made_by(NodeId node) const {
    Bytes bytes = 0;
    for (const ValueId root : storages_of(node, true)) bytes += graph_.bytes(root);
    return bytes;
  }

  bool delay(NodeId node) {
    const Position from = position_[node];
    auto to = static_cast<Position>(order_.size()) - 1;
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      for (const NodeId reader : readers_[graph_.first_output(node) + i]) {
        to = std::min<Position>(to, position_[reader] - 1);
      }
    }
    Bytes gain = made_by(node);
    if (to <= from || gain == 0) return false;
    losses_.clear();
    for (const ValueId root : storages_of(node, false)) {
      const Position last = last_other(root, node);
      if (last < to) losses_.push_back({std::max(last, from), graph_.bytes(root)});
    }
    std::sort(losses_.begin(), losses_.end(),
              [](const Loss& a, const Loss& b) { return a.at < b.at; });
    for (const Loss& loss : losses_) {
      gain -= loss.bytes;
      if (gain > 0) continue;
      to = loss.at;
      break;
    }
    return to > from && move(from, to);
  }

  bool hasten(NodeId node) {
    const Position from = position_[node];
    Position to = 0;
    for (const ValueId input : graph_.inputs(node)) {
      const NodeId producer = graph_.producer(input);
      if (position_[producer] != none) to = std::max<Position>(to, position_[producer] + 1);
    }
    if (to >= from) return false;
    losses_.clear();
    Bytes gain = -made_by(node);
    for (const ValueId root : storages_of(node, false)) {
      const Position last = last_other(root, node);
      if (last >= from) continue;
      gain += graph_.bytes(root);
      losses_.push_back({last + 1, graph_.bytes(root)});
    }
    if (gain <= 0) return false;
    std::sort(losses_.begin(), losses_.end(),
              [](const Loss& a, const Loss& b) { return a.at > b.at; });
    for (const Loss& loss : losses_) {
      gain -= loss.bytes;
      if (gain > 0) continue;
      to = std::max(to, loss.at);
      break;
    }
    return to < from && move(from, to);
  }

  bool move(Position from, Position to) {
    if (left_ <= 0) return false;
    left_ -= std::abs(to - from);
    const auto begin = order_.begin();
    if (from < to) {
      std::rotate(begin + from, begin + from + 1, begin + to + 1);
    } else {
      std::rotate(begin + to, begin + from, begin + from + 1);
    }
    for (Position k = std::min(from, to); k <= std::max(from, to); ++k) {
      position_[order_[static_cast<std::size_t>(k)]] = static_cast<std::uint32_t>(k);
    }
    return true;
  }

  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<std::uint32_t> position_;       // by node; none if not needed
  std::vector<bool> is_target_;               // by storage
  std::vector<std::vector<NodeId>> readers_;  // by value
  std::vector<std::vector<NodeId>> users_;    // by storage
  std::int64_t left_;
  std::vector<Loss> losses_;
};

}  // namespace

std::vector<NodeId> reorder(const Graph& graph) {
  constexpr int most_rounds = 8;
  const auto peak = [&](const std::vector<NodeId>& order) {
    return simulate(graph, drop_after_last_use(graph, order)).peak;
  };
  Reordering reordering(graph);
  std::vector<NodeId> best = reordering.order();
  Bytes least = peak(best);
  for (int round = 0; round < most_rounds; ++round) {
    const bool more = reordering.round();
    const Bytes now = peak(reordering.order());
    if (now < least) {
      least = now;
      best = reordering.order();
    }
    if (!more) break;
  }
  return best;
}

}  // namespace palimpsest
