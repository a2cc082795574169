#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "checkpoint/engine_planner.h"
#include "checkpoint/pareto_front.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/eviction.h"
#include "checkpoint/planners/retention.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

/// The best of these weights differs from graph to graph and from level to level.
constexpr std::array<EvictionWeights, 6> portfolio{{{.bytes = 1, .distance = 0.5, .missing = 1},
                                                    {.bytes = 1, .distance = 0.5, .missing = 0.3},
                                                    {.bytes = 1, .distance = 0, .missing = 1},
                                                    {.bytes = 1, .distance = 1, .missing = 1},
                                                    {.bytes = 0.5, .distance = 0.5, .missing = 1},
                                                    {.bytes = 1, .distance = 0.5, .missing = 0}}};

/// Searches one level after another, upwards, and keeps the best.
class Levels {
 public:
  explicit Levels(const Graph& graph)
      : graph_(graph), eviction_(graph), nodes_(graph.needed_nodes().size()) {
    most_steps_ = 8 * nodes_ + 64;
    // Recomputing present values may take nodes that are not needed otherwise.
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      if (!graph.is_present(value)) continue;
      most_steps_ += graph.node_count();
      break;
    }
  }

  std::vector<Proposal> run() {
    // Bounds the work to a few hundredths of a second and to a tenth of one pass. Large graphs
    // first get fewer levels, then fewer weights.
    constexpr double seconds_per_node = 1.5e-6;
    const double work = std::clamp(0.1 * graph_.one_pass_cost() / seconds_per_node, 3e3, 4e4);
    const auto runs =
        static_cast<std::size_t>(std::clamp(work / static_cast<double>(nodes_ + 1), 6.0, 300.0));
    const std::size_t weights = std::clamp<std::size_t>(runs / 24, 1, portfolio.size());
    const std::size_t levels = std::min(runs / weights, nodes_ + 6);
    const auto lowest = static_cast<double>(eviction_.lowest_level());
    const double range = static_cast<double>(eviction_.highest_level()) - lowest;
    for (std::size_t k = 0; k < levels; ++k) {
      const double part = static_cast<double>(k) / static_cast<double>(levels);
      const auto level = static_cast<Bytes>(lowest + std::pow(part, 1.5) * range);
      cost_ = std::numeric_limits<double>::infinity();
      found_.clear();
      held_.clear();
      if (!order_.empty()) consider(std::vector<NodeId>(order_), level);
      for (std::size_t w = 0; w < weights; ++w) {
        if (auto order = eviction_.run(level, most_steps_, portfolio[w])) {
          consider(without_useless(graph_, *order), level);
        }
      }
    }
    std::vector<Proposal> found = front_.take();
    // Every level took too many steps.
    if (found.empty()) found = keep_all()->propose(graph_, unlimited);
    return found;
  }

 private:
  void consider(std::vector<NodeId> order, Bytes level) {
    if (!is_new(order, found_)) return;
    order = hold_instead(graph_, std::move(order), level);
    if (!is_new(order, held_)) return;
    Measured measured = measure(graph_, drop_after_last_use(graph_, order));
    if (measured.peak <= level && measured.cost < cost_) {
      cost_ = measured.cost;
      order_ = std::move(order);
    }
    front_.add(std::move(measured));
  }

  /// Adds an order to those of the current level, unless it is among them. Weights often find the
  /// same orders, most of all on small graphs.
  static bool is_new(const std::vector<NodeId>& order, std::vector<std::vector<NodeId>>& known) {
    if (std::ranges::find(known, order) != known.end()) return false;
    known.push_back(order);
    return true;
  }

  const Graph& graph_;
  Eviction eviction_;
  std::size_t nodes_;
  std::size_t most_steps_ = 0;
  std::vector<NodeId> order_;  // the cheapest within the current level, where the next one starts
  double cost_ = 0;            // its cost
  std::vector<std::vector<NodeId>> found_;  // at the current level
  std::vector<std::vector<NodeId>> held_;   // likewise, after `hold_instead`
  ParetoFront front_;
};

class Greedy final : public EnginePlanner {
 public:
  std::string name() const override { return "greedy"; }
  bool accepts_keep_all() const override { return true; }
  bool ignores_budget() const override { return true; }

  /// Plans for levels that depend on the graph alone, so a larger budget has every choice that a
  /// smaller one has.
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    return Levels(graph).run();
  }
};

}  // namespace

PlannerPtr greedy() { return std::make_shared<Greedy>(); }

}  // namespace palimpsest
