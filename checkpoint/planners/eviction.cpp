#include "checkpoint/planners/eviction.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "checkpoint/layout.h"
#include "checkpoint/planning_stop.h"
#include "checkpoint/rematerialize.h"

namespace palimpsest {

/// Input of every run: the order of the nodes and, by storage, its size and when it is read.
struct Eviction::Program {
  explicit Program(const Graph& g);

  const Graph& graph;
  std::vector<NodeId> order;
  std::vector<double> clock;               ///< by position: seconds before it, strictly increasing
  std::vector<Bytes> bytes;                ///< by root: rounded as in a layout
  std::vector<std::uint32_t> first_use;    ///< by root: where its row of `uses` begins
  std::vector<std::uint32_t> uses;         ///< positions, rising; `order.size()` for targets
  std::vector<std::uint32_t> first_value;  ///< by root: where its row of `values` begins
  std::vector<ValueId> values;             ///< by root: the values in the storage
  double tick = 0;                         ///< least seconds between two positions
};

namespace {

/// Rows of numbers, one per key: `for_each(use)` calls `use(key, number)` for each entry, twice.
template <class ForEach>
void fill_rows(std::size_t keys, std::vector<std::uint32_t>& first,
               std::vector<std::uint32_t>& entries, ForEach for_each) {
  first.assign(keys + 1, 0);
  for_each([&](std::uint32_t key, std::uint32_t) { ++first[key + 1]; });
  for (std::size_t key = 0; key < keys; ++key) first[key + 1] += first[key];
  entries.resize(first[keys]);
  std::vector<std::uint32_t> end(first.begin(), first.end() - 1);
  for_each([&](std::uint32_t key, std::uint32_t entry) { entries[end[key]++] = entry; });
}

/// `std::pow`, fast for the exponents that weights have.
double power(double base, double exponent) {
  if (exponent == 0) return 1;
  if (exponent == 0.5) return std::sqrt(base);
  return exponent == 1 ? base : std::pow(base, exponent);
}

}  // namespace

Eviction::Program::Program(const Graph& g) : graph(g), order(g.needed_nodes()) {
  const std::size_t count = graph.value_count();
  bytes.resize(count);
  for (ValueId value = 0; value < count; ++value) bytes[value] = laid_out(graph.bytes(value));

  double total = 0;
  for (const NodeId node : order) total += graph.cost(node);
  tick = 1e-3 * (total > 0 ? total : 1.0) / static_cast<double>(order.size() + 1);
  double now = 0;
  for (const NodeId node : order) {
    clock.push_back(now);
    now += graph.cost(node) + tick;
  }
  clock.push_back(now);

  fill_rows(count, first_use, uses, [&](auto&& use) {
    for (std::uint32_t at = 0; at < order.size(); ++at) {
      for (const ValueId input : graph.inputs(order[at])) use(graph.storage(input), at);
    }
    for (const ValueId target : graph.targets()) {
      use(graph.storage(target), static_cast<std::uint32_t>(order.size()));
    }
  });
  fill_rows(count, first_value, values, [&](auto&& use) {
    for (ValueId value = 0; value < count; ++value) use(graph.storage(value), value);
  });
}

/// One walk at one level.
class Eviction::Run {
 public:
  Run(const Program& program, Bytes level, std::size_t most_steps, EvictionWeights weights)
      : p_(program),
        graph_(program.graph),
        level_(level),
        most_steps_(most_steps),
        weights_(weights),
        missing_(graph_),
        live_(graph_.value_count()),
        storages_(graph_.value_count()),
        weight_(graph_.value_count()),
        seen_(graph_.node_count()) {
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      storages_[value].next_use = p_.first_use[value];
      weight_[value] = power(static_cast<double>(p_.bytes[value]), weights_.bytes);
      if (graph_.is_present(value)) revive(value);
    }
  }

  /// False when the limit of steps was reached.
  bool walk() {
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      if (storages_[value].holders > 0) release_if_dead(value);
    }
    peak_ = bytes_;
    for (at_ = 0; at_ < p_.order.size(); ++at_) {
      PlanningStop::check();
      if (!compute_all({&p_.order[at_], 1})) return false;
      for (const ValueId input : graph_.inputs(p_.order[at_])) {
        const ValueId root = graph_.storage(input);
        pass(root);
        release_if_dead(root);
        offer(root);
      }
    }
    // The targets are read together at the end.
    for (const ValueId target : graph_.targets()) ++storages_[graph_.storage(target)].pins;
    const std::span<const NodeId> last = missing_.find(graph_.targets(), live_);
    return compute_all(std::vector<NodeId>(last.begin(), last.end()));
  }

  std::vector<NodeId> take_steps() { return std::move(steps_); }
  Bytes peak() const { return peak_; }
  Bytes largest_working_set() const { return largest_; }

 private:
  struct Storage {
    std::uint32_t holders = 0;  ///< live values in it
    std::uint32_t pins = 0;     ///< reads by steps in progress
    std::uint32_t pending = 0;  ///< reads of nodes waiting to be computed again
    std::uint32_t next_use = 0;
  };
  /// Nodes to compute one after the other. The frame below waits for them.
  struct Frame {
    std::vector<NodeId> nodes;
    std::size_t at = 0;
    bool pinned = false;
  };
  struct Offer {
    double score;
    ValueId root;
    bool operator<(const Offer& other) const {
      return score > other.score || (score == other.score && root > other.root);
    }
  };

  bool compute_all(std::span<const NodeId> nodes) {
    std::vector<Frame> stack;
    stack.push_back({{nodes.begin(), nodes.end()}});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const bool again = stack.size() > 1;
      if (frame.at == frame.nodes.size()) {
        stack.pop_back();
        continue;
      }
      const NodeId node = frame.nodes[frame.at];
      const std::span<const ValueId> inputs = graph_.inputs(node);
      if (again && !frame.pinned && !is_wanted(node)) {
        finish(frame, inputs, again);
        continue;
      }
      if (!frame.pinned) {
        for (const ValueId input : inputs) ++storages_[graph_.storage(input)].pins;
        frame.pinned = true;
      }
      const std::span<const NodeId> before = missing_.find(inputs, live_);
      if (!before.empty()) {
        searched_ += before.size();
        for (const NodeId ancestor : before) {
          for (const ValueId input : graph_.inputs(ancestor)) {
            ++storages_[graph_.storage(input)].pending;
          }
        }
        stack.push_back({{before.begin(), before.end()}});
        continue;
      }
      if (steps_.size() + searched_ / 8 > most_steps_) return false;
      compute(node);
      for (const ValueId input : inputs) --storages_[graph_.storage(input)].pins;
      finish(frame, inputs, again);
    }
    return true;
  }

  /// Finishes the current node of a frame.
  void finish(Frame& frame, std::span<const ValueId> inputs, bool again) {
    for (const ValueId input : inputs) {
      const ValueId root = graph_.storage(input);
      if (!again) continue;  // the walk advances their next use
      --storages_[root].pending;
      release_if_dead(root);
      offer(root);
    }
    frame.pinned = false;
    ++frame.at;
  }

  /// True when a missing output is wanted by a waiting node.
  bool is_wanted(NodeId node) const {
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      const ValueId output = graph_.first_output(node) + i;
      const Storage& storage = storages_[graph_.storage(output)];
      if (!live_[output] && storage.pins + storage.pending > 0) return true;
    }
    return false;
  }

  void compute(NodeId node) {
    const ValueId first = graph_.first_output(node);
    const ValueId end = first + graph_.output_count(node);
    Bytes extra = laid_out(graph_.workspace(node));
    Bytes working_set = extra;
    for (ValueId output = first; output < end; ++output) {
      Storage& storage = storages_[graph_.storage(output)];
      ++storage.pins;
      if (storage.holders == 0) extra += p_.bytes[graph_.storage(output)];
      working_set += p_.bytes[output];
    }
    make_room(extra);
    steps_.push_back(node);
    for (ValueId output = first; output < end; ++output) revive(output);
    peak_ = std::max(peak_, bytes_ + laid_out(graph_.workspace(node)));
    for (ValueId output = first; output < end; ++output) {
      const ValueId root = graph_.storage(output);
      --storages_[root].pins;
      release_if_dead(root);
      offer(root);
    }
    const std::span<const ValueId> inputs = graph_.inputs(node);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId root = graph_.storage(inputs[i]);
      const auto same = [&](ValueId other) { return graph_.storage(other) == root; };
      if (std::none_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(i), same)) {
        working_set += p_.bytes[root];
      }
    }
    largest_ = std::max(largest_, working_set);
  }

  void make_room(Bytes extra) {
    while (bytes_ + extra > level_ && !offers_.empty()) {
      const Offer offer = offers_.top();
      offers_.pop();
      const Storage& storage = storages_[offer.root];
      if (storage.holders == 0 || storage.pins > 0) continue;  // offered again when released
      const double score = score_of(offer.root);
      if (score > offer.score * (1 + 1e-9) && !offers_.empty() && score > offers_.top().score) {
        offers_.push({score, offer.root});
        continue;
      }
      drop(offer.root);
    }
  }

  double score_of(ValueId root) {
    const Storage& storage = storages_[root];
    double distance = p_.tick;
    if (storage.pending == 0) {
      const std::uint32_t use = p_.uses[storage.next_use];
      distance = std::max(distance, p_.clock[use] - p_.clock[std::min<std::size_t>(at_, use)]);
    }
    return cost_of(root) / (weight_[root] * power(distance, weights_.distance));
  }

  /// Seconds to recompute the storage, including what is missing for that. The search is limited.
  double cost_of(ValueId root) {
    constexpr std::size_t most = 64;
    ++call_;
    nodes_.clear();
    double cost = 0;
    const auto visit = [&](NodeId node) {
      if (seen_[node] == call_ || graph_.is_source(node)) return;
      seen_[node] = call_;
      cost += graph_.cost(node) * (nodes_.empty() ? 1 : weights_.missing);
      nodes_.push_back(node);
    };
    visit(graph_.producer(root));
    for (std::size_t k = 0; k < nodes_.size() && nodes_.size() < most; ++k) {
      for (const ValueId input : graph_.inputs(nodes_[k])) {
        if (!live_[input]) visit(graph_.producer(input));
      }
    }
    return cost;
  }

  void offer(ValueId root) {
    const Storage& storage = storages_[root];
    if (storage.holders == 0 || storage.pins > 0 || p_.bytes[root] == 0) return;
    if (storage.pending == 0 && storage.next_use == p_.first_use[root + 1]) return;
    offers_.push({score_of(root), root});
  }

  void revive(ValueId value) {
    if (live_[value]) return;
    live_[value] = true;
    const ValueId root = graph_.storage(value);
    if (storages_[root].holders++ == 0) bytes_ += p_.bytes[root];
  }

  void pass(ValueId root) {
    std::uint32_t& next = storages_[root].next_use;
    while (next < p_.first_use[root + 1] && p_.uses[next] <= at_) ++next;
  }

  void release_if_dead(ValueId root) {
    const Storage& storage = storages_[root];
    if (storage.pins + storage.pending > 0) return;
    if (storage.next_use == p_.first_use[root + 1]) drop(root);
  }

  void drop(ValueId root) {
    if (storages_[root].holders == 0) return;
    for (std::uint32_t k = p_.first_value[root]; k < p_.first_value[root + 1]; ++k) {
      live_[p_.values[k]] = false;
    }
    storages_[root].holders = 0;
    bytes_ -= p_.bytes[root];
  }

  const Program& p_;
  const Graph& graph_;
  Bytes level_;
  std::size_t most_steps_;
  EvictionWeights weights_;
  MissingNodes missing_;
  std::vector<bool> live_;
  std::vector<Storage> storages_;
  std::vector<double> weight_;  // by root, of its bytes
  std::priority_queue<Offer> offers_;
  std::vector<NodeId> steps_;
  std::vector<NodeId> nodes_;        // of the search in cost_of
  std::vector<std::uint32_t> seen_;  // by node, the last search that visited it
  std::uint32_t call_ = 0;
  std::uint32_t at_ = 0;
  std::size_t searched_ = 0;  // nodes found missing, summed over all searches
  Bytes bytes_ = 0;
  Bytes peak_ = 0;
  Bytes largest_ = 0;
};

Eviction::Eviction(const Graph& graph) : program_(std::make_unique<Program>(graph)) {
  Run unbounded(*program_, INT64_MAX / 2, SIZE_MAX, {});
  unbounded.walk();
  lowest_ = unbounded.largest_working_set();
  highest_ = unbounded.peak();
}

Eviction::~Eviction() = default;

std::optional<std::vector<NodeId>> Eviction::run(Bytes level, std::size_t most_steps,
                                                 EvictionWeights weights) const {
  Run run(*program_, level, most_steps, weights);
  if (!run.walk()) return std::nullopt;
  return run.take_steps();
}

}  // namespace palimpsest
