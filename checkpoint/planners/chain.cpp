#include <algorithm>
#include <cmath>
#include <memory>

#include "checkpoint/chains/optimal.h"
#include "checkpoint/engine_planner.h"
#include "checkpoint/pareto_front.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/retention.h"
#include "checkpoint/planners/stage_costs.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

class ChainPlanner final : public EnginePlanner {
 public:
  explicit ChainPlanner(ChainSettings settings) : settings_(settings) {
    if (settings.stages == 0 || settings.slots == 0) {
      throw ArgumentError("[chain] " + std::to_string(settings.stages) + " stages and " +
                          std::to_string(settings.slots) + " slots; give at least one of each");
    }
  }

  std::string name() const override { return "chain"; }
  bool ignores_budget() const override { return true; }
  std::string key() const override {
    return name() + " " + std::to_string(settings_.stages) + " " +
           std::to_string(settings_.records) + " " + std::to_string(settings_.slots);
  }
  bool accepts_keep_all() const override { return true; }

  /// Plans for levels that depend on the graph alone, so a larger budget has every choice that a
  /// smaller one has.
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    ParetoFront front;
    std::vector<Stages> tried;
    // Short stages suit small budgets. Long ones, with more choices in each, suit large budgets.
    const std::uint32_t stages = stages_for(graph);
    for (const std::uint32_t most : {stages, (stages + 3) / 4}) {
      // Storages with distant reads spoil the cuts in between. Whether it is better to hold them
      // differs from graph to graph.
      for (const std::uint32_t part : {0u, 4u, 16u}) {
        Stages cut(graph, "chain", {.most_stages = most, .far_part = part});
        if (std::find(tried.begin(), tried.end(), cut) != tried.end()) continue;
        propose_for(cut, front);
        tried.push_back(std::move(cut));
      }
    }
    return front.take();
  }

 private:
  struct Level {
    Bytes bytes;
    std::vector<ChainOperation> operations;
  };

  /// A table for n stages has n²/2 rows of slots. It should be small compared with the graph,
  /// except for small graphs, where every step may be a stage.
  std::uint32_t stages_for(const Graph& graph) const {
    constexpr std::uint32_t small_graph = 512;
    constexpr double bytes_per_node = 1024;
    if (graph.node_count() < small_graph) return settings_.stages;
    const double rows = bytes_per_node * graph.node_count() / sizeof(float) / settings_.slots;
    const auto most = static_cast<std::uint32_t>(std::sqrt(2 * rows));
    return std::clamp(most, 1u, settings_.stages);
  }

  void propose_for(const Stages& stages, ParetoFront& front) const {
    const StageCosts costs = measure_stages(stages, settings_.records);
    // Large graphs get fewer levels, because executing them takes time.
    const int levels = std::clamp(static_cast<int>(2'000'000 / stages.graph().node_count()), 6, 24);
    for (const auto& [bytes, operations] : plan(costs.chain, levels)) {
      front.add(measure(stages.graph(), carry_out(stages, costs, operations, bytes)));
    }
  }

  /// The operations at levels between the most and the least useful memory.
  std::vector<Level> plan(const std::vector<ChainStage>& chain, int levels) const {
    const OptimalChain::Settings settings{.slots = settings_.slots, .bounded = false};
    auto table = std::make_unique<OptimalChain>(chain, INT64_MAX, settings);
    const Bytes smallest = table->smallest_budget();
    const Bytes largest = table->largest_budget();
    // `largest` is 0 when no value has elements.
    const double ratio =
        largest > 0 ? static_cast<double>(smallest) / static_cast<double>(largest) : 1;
    Bytes most = largest;
    std::vector<Level> result;
    for (int level = 0; level <= levels; ++level) {
      const double part = std::pow(ratio, static_cast<double>(level) / levels);
      const auto bytes =
          std::max(static_cast<Bytes>(part * static_cast<double>(largest)), smallest);
      // A level that few slots of the table cover gets a table of its own.
      if (bytes < most / 6) {
        most = bytes;
        table.reset();  // one at a time is large enough
        table = std::make_unique<OptimalChain>(chain, most, settings);
      }
      std::vector<ChainOperation> operations = table->plan(bytes).operations;
      if (!result.empty() && operations == result.back().operations) continue;
      result.push_back({bytes, std::move(operations)});
    }
    return result;
  }

  static Schedule carry_out(const Stages& stages, const StageCosts& costs,
                            std::span<const ChainOperation> operations, Bytes level) {
    const Graph& graph = stages.graph();
    StageOrder order(graph);
    for (const auto& [kind, stage, record] : operations) {
      if (kind == ChainOperation::Kind::backward) {
        order.run(costs.backward[stage][record]);
      } else {
        order.run(stages.forward(stage));  // values that are read later are held
      }
    }
    // A stage that is recorded again also makes its output, which may have been live a moment
    // before. The search is not linear, so long orders go without it.
    constexpr std::size_t long_order = 200'000;
    std::vector<NodeId> nodes = order.nodes();
    if (nodes.size() < long_order) nodes = hold_instead(graph, std::move(nodes), level);
    return drop_after_last_use(graph, nodes);
  }

  ChainSettings settings_;
};

}  // namespace

PlannerPtr chain(ChainSettings settings) { return std::make_shared<ChainPlanner>(settings); }

}  // namespace palimpsest
