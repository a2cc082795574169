#include "checkpoint/online_budget.h"

#include <algorithm>
#include <vector>

#include "checkpoint/layout.h"
#include "checkpoint/online_eviction.h"

namespace palimpsest {

namespace {

/// Simulates the decisions without computing anything.
class DryRun final : private OnlineEviction::Host {
 public:
  DryRun(const Graph& graph, Bytes budget)
      : graph_(graph),
        eviction_(graph, budget, *this),
        steps_left_(32 * std::size_t{graph.node_count()} + 1024) {}

  bool fits(std::span<const OnlineRead> reads) {
    try {
      auto read = reads.begin();
      const auto read_until = [&](NodeId node) {
        for (; read != reads.end() && read->nodes <= node; ++read) {
          std::vector<ValueId> known;
          for (const ValueId value : read->values) {
            if (value < graph_.value_count() && graph_.producer(value) < node) {
              known.push_back(value);
            }
          }
          if (!known.empty() && eviction_.require(known)) return false;
        }
        return true;
      };
      for (NodeId node = 0; node < graph_.node_count(); ++node) {
        if (!read_until(node)) return false;
        if (!graph_.is_source(node) && eviction_.compute(node)) return false;
      }
      return read_until(graph_.node_count());
    } catch (const Thrashing&) {
      return false;
    }
  }

 private:
  struct Thrashing {};

  void compute(NodeId) override {
    if (steps_left_-- == 0) throw Thrashing();
  }
  void drop(ValueId) override {}

  const Graph& graph_;
  OnlineEviction eviction_;
  std::size_t steps_left_;
};

/// Bytes of a tape that drops nothing.
Bytes bytes_of_all(const Graph& graph) {
  Bytes sum = 0;
  Bytes workspace = 0;
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    const bool owns = graph.storage(value) == value && !graph.is_source_value(value);
    if (owns) sum += laid_out(graph.bytes(value));
  }
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    workspace = std::max(workspace, laid_out(graph.workspace(node)));
  }
  return sum + workspace;
}

}  // namespace

Bytes smallest_online_budget(const Graph& graph, std::span<const OnlineRead> reads, Bytes least) {
  const auto fits = [&](Bytes budget) { return DryRun(graph, budget).fits(reads); };
  if (fits(least)) return least;
  Bytes low = least;
  Bytes high = std::max(bytes_of_all(graph), least);
  constexpr int most_tries = 16;
  for (int tries = 0; tries < most_tries && high - low > std::max<Bytes>(high / 50, 64); ++tries) {
    const Bytes middle = laid_out(low + (high - low) / 2);
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace palimpsest
