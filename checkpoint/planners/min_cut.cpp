#include <algorithm>
#include <queue>

#include "checkpoint/engine_planner.h"
#include "checkpoint/pareto_front.h"
#include "checkpoint/planners/retention.h"
#include "checkpoint/planning_stop.h"
#include "checkpoint/recompute_network.h"
#include "checkpoint/rematerialize.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

using Choice = RecomputeNetwork::Choice;

/// The choices that are cheapest at some price of a byte, from keeping everything to keeping
/// nothing. They form the lower convex hull of bytes against seconds: its corners, and points on
/// long sides. The work is limited; wide gaps are examined first.
std::vector<Choice> choices_of(const RecomputeNetwork& network) {
  struct Gap {
    Choice more, less;
    bool straight = false;        // points between the ends are as cheap as the ends
    double fewest = 0, most = 1;  // shares kept of the difference between the ends
    Bytes width() const { return more.bytes - less.bytes; }
    bool operator<(const Gap& other) const { return width() < other.width(); }
  };
  constexpr std::size_t work = 4'000'000;
  const std::size_t most = std::clamp<std::size_t>(work / (network.size() + 1), 4, 64);
  std::vector<Choice> choices{network.keep_all(), network.keep_none()};
  std::priority_queue<Gap> gaps;
  gaps.push({choices[0], choices[1]});
  for (std::size_t cuts = 0; cuts < most && !gaps.empty() && gaps.top().width() > 0; ++cuts) {
    PlanningStop::check();
    Gap gap = gaps.top();
    gaps.pop();
    const double price = (gap.less.seconds - gap.more.seconds) / static_cast<double>(gap.width());
    const double share = (gap.fewest + gap.most) / 2;
    Choice between = gap.straight ? network.cheapest(price, share) : network.cheapest(price);
    if (between.bytes > gap.less.bytes && between.bytes < gap.more.bytes) {
      gaps.push({gap.more, between, gap.straight, share, gap.most});
      gaps.push({between, gap.less, gap.straight, gap.fewest, share});
      choices.push_back(std::move(between));
    } else if (!gap.straight) {
      gap.straight = true;
      gaps.push(std::move(gap));
    }
  }
  return choices;
}

class MinCut final : public EnginePlanner {
 public:
  std::string name() const override { return "min cut"; }
  bool ignores_budget() const override { return true; }

  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    const NodeId backward = graph.backward_begins().value_or(graph.node_count());
    Moment end_of_forward{std::vector<bool>(graph.node_count()),
                          std::vector<double>(graph.node_count()),
                          std::vector<bool>(graph.value_count())};
    for (NodeId node = 0; node < graph.node_count(); ++node) {
      end_of_forward.extra[node] = graph.cost(node);
    }
    for (const NodeId node : graph.needed_nodes()) end_of_forward.after[node] = node >= backward;
    // Targets stay once they are made.
    for (const ValueId target : graph.targets()) end_of_forward.there[graph.storage(target)] = true;

    const RecomputeNetwork network(graph, end_of_forward);
    ParetoFront front;
    for (const Choice& choice : choices_of(network)) {
      std::vector<bool> dropped(graph.value_count());
      for (const ValueId root : network.keep_all().kept) dropped[root] = true;
      for (const ValueId root : choice.kept) dropped[root] = false;
      // Values that are read soon after the forward part need not be dropped.
      std::vector<NodeId> order = rematerialize(graph, dropped);
      const Bytes peak = simulate(graph, drop_after_last_use(graph, order)).peak;
      order = hold_instead(graph, std::move(order), peak);
      front.add(measure(graph, drop_after_last_use(graph, order)));
    }
    return front.take();
  }
};

}  // namespace

PlannerPtr min_cut() { return std::make_shared<MinCut>(); }

}  // namespace palimpsest
