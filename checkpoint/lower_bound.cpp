#include "checkpoint/lower_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "checkpoint/recompute_network.h"
#include "checkpoint/schedule.h"

// Why the bound holds.
//
// Take a node m that has to run and, in any valid schedule, the moment t at which it runs for the
// first time. Every node that a target needs has to run at least once. The *ancestors* of m, which
// it needs, have run before t. Its *descendants*, which need it, run after t. (A path through a
// value present at the start forces nothing.) So the schedule takes one pass and, in addition, at
// least
//
//     E = the cost of the ancestors of m, and of nodes not needed, that run after t.
//
// A node that runs after t reads values that are live at t, or values made after t by other such
// nodes (consider the first run of these since t). A target must be live at t or made after it. So
// the storages live at t and the nodes that run after t are a choice in the sense of
// `RecomputeNetwork`. There, m's descendants are the nodes that run in any case. The choice's
// seconds are at most E: nodes unrelated to m add nothing there, and a demand for a view only
// demands its base. The inputs and outputs of m are live at t. With m's workspace they leave A
// bytes of the budget to all other storages live at t (an input that an output may take over does
// not count). In the network they are free, and the rest of the choice takes at most A bytes.
// Hence, for each price λ ≥ 0 of a byte,
//
//     E ≥ (seconds + λ bytes of that choice) − λ A ≥ (least seconds + λ bytes of any choice) − λ A.
//
// The right side is concave in λ, and its slope is the bytes of the cheapest choice minus A. So a
// few minimum cuts find its maximum. The bound holds for each m on its own.

namespace palimpsest {

namespace {

Moment first_run_of(const Graph& graph, const std::vector<NodeId>& needed, NodeId node) {
  Moment moment{std::vector<bool>(graph.node_count()), std::vector<double>(graph.node_count()),
                std::vector<bool>(graph.value_count())};
  std::vector<bool> before(graph.node_count());
  before[node] = moment.after[node] = true;
  for (const NodeId other : needed) {
    for (const ValueId input : graph.inputs(other)) {
      if (!graph.is_present(input) && moment.after[graph.producer(input)])
        moment.after[other] = true;
    }
  }
  moment.after[node] = false;
  for (NodeId other = 0; other < graph.node_count(); ++other)
    moment.extra[other] = graph.cost(other);
  for (std::size_t k = needed.size(); k-- > 0;) {
    if (!before[needed[k]]) moment.extra[needed[k]] = 0;
    if (!before[needed[k]]) continue;
    for (const ValueId input : graph.inputs(needed[k])) {
      if (!graph.is_present(input)) before[graph.producer(input)] = true;
    }
  }
  return moment;
}

/// Calls `take(root)` for the storage of each value `node` reads or makes.
template <class Take>
void for_each_operand(const Graph& graph, NodeId node, Take take) {
  for (const ValueId input : graph.inputs(node)) take(graph.storage(input));
  for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
    take(graph.storage(graph.first_output(node) + i));
  }
}

/// Bytes of storages that the outputs of a node may take over.
Bytes taken_over(const Graph& graph, NodeId node) {
  Bytes bytes = 0;
  for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
    const ValueId root = graph.possible_donor(graph.first_output(node) + i);
    if (root != none) bytes += graph.bytes(root);
  }
  return bytes;
}

/// Bytes of storages, each counted once.
class Sum {
 public:
  explicit Sum(const Graph& graph) : graph_(graph), last_(graph.value_count()) {}
  void begin(Bytes bytes) { ++sum_, bytes_ = bytes; }
  void add(ValueId root) {
    if (last_[root] != sum_) bytes_ += graph_.bytes(root);
    last_[root] = sum_;
  }
  Bytes bytes() const { return bytes_; }

 private:
  const Graph& graph_;
  std::vector<std::uint32_t> last_;  // by root, the last sum it was counted in
  std::uint32_t sum_ = 0;
  Bytes bytes_ = 0;
};

/// Searches for the moment and the price with the highest bound.
class Search {
 public:
  Search(const Graph& graph, Bytes budget)
      : graph_(graph),
        budget_(budget),
        needed_(graph.needed_nodes()),
        one_pass_(graph.one_pass_cost()),
        sum_(graph) {}

  double run() {
    if (peak_bound(graph_).bytes > budget_) return std::numeric_limits<double>::infinity();
    constexpr std::size_t work = 6'000'000;  // vertices and edges of all cuts
    for (const NodeId node : candidates()) {
      if (work_ > work) break;
      consider(node);
    }
    // margin for rounding
    return one_pass_ + std::max(0.0, extra_ - 1e-9 * one_pass_);
  }

 private:
  /// The needed nodes, when keeping everything does not fit, in order of live bytes, most first:
  /// the bound tends to be highest where memory is shortest.
  std::vector<NodeId> candidates() const {
    const Schedule schedule = drop_after_last_use(graph_, needed_);
    const Simulation simulation = simulate(graph_, schedule);
    if (simulation.peak <= budget_) return {};
    std::vector<Bytes> live(graph_.node_count());
    for (std::size_t k = 0; k < schedule.steps.size(); ++k) {
      const Step step = schedule.steps[k];
      if (step.kind == Step::Kind::compute) live[step.id] = simulation.timeline[k];
    }
    std::vector<NodeId> nodes = needed_;
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](NodeId a, NodeId b) { return live[a] > live[b]; });
    return nodes;
  }

  void consider(NodeId node) {
    Moment moment = first_run_of(graph_, needed_, node);
    sum_.begin(graph_.workspace(node) - taken_over(graph_, node));
    for_each_operand(graph_, node, [&](ValueId root) {
      sum_.add(root);
      moment.there[root] = true;
    });
    const Bytes available = budget_ - sum_.bytes();
    const RecomputeNetwork network(graph_, moment);
    work_ += network.size();
    RecomputeNetwork::Choice more = network.keep_all();   // takes more than `available`
    RecomputeNetwork::Choice less = network.keep_none();  // takes at most `available`
    if (more.bytes <= available) return;
    double price = price_;
    for (int round = 0; round < 50; ++round) {
      // The concave function lies below two lines. They cross at the next price.
      const double crossing =
          (less.seconds - more.seconds) / static_cast<double>(more.bytes - less.bytes);
      const auto at_most = [&](double seconds, Bytes bytes, double at) {
        return seconds + at * static_cast<double>(bytes - available);
      };
      if (at_most(more.seconds, more.bytes, crossing) <= extra_ + 1e-6 * one_pass_) break;
      if (round > 0 || price == 0) price = crossing;
      RecomputeNetwork::Choice choice = network.cheapest(price);
      work_ += network.size();
      const double bound = at_most(choice.value, 0, price);
      if (bound > extra_) {
        extra_ = bound;
        price_ = price;
      }
      RecomputeNetwork::Choice& line = choice.bytes > available ? more : less;
      if (price == crossing && choice.bytes == line.bytes) break;
      line = std::move(choice);
    }
  }

  const Graph& graph_;
  Bytes budget_;
  std::vector<NodeId> needed_;
  double one_pass_;
  Sum sum_;
  double extra_ = 0;  // the best bound so far
  double price_ = 0;  // the price at which it was found
  std::size_t work_ = 0;
};

}  // namespace

PeakBound peak_bound(const Graph& graph) {
  Sum sum(graph);
  PeakBound bound;
  const auto end = [&](NodeId node) {
    if (sum.bytes() > bound.bytes) bound = {sum.bytes(), node};
  };
  sum.begin(0);
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (graph.is_present(value)) sum.add(graph.storage(value));
  }
  end(none);
  sum.begin(0);
  for (const ValueId target : graph.targets()) sum.add(graph.storage(target));
  end(none);
  for (const NodeId node : graph.needed_nodes()) {
    sum.begin(graph.workspace(node) - taken_over(graph, node));
    for_each_operand(graph, node, [&](ValueId root) { sum.add(root); });
    end(node);
  }
  return bound;
}

double lower_bound(const Graph& graph, Bytes budget) { return Search(graph, budget).run(); }

}  // namespace palimpsest
