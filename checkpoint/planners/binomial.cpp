#include "checkpoint/chains/binomial.h"

#include "checkpoint/engine_planner.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/stages.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

class BinomialPlanner final : public EnginePlanner {
 public:
  explicit BinomialPlanner(BinomialSettings settings) : snapshots_(settings.snapshots) {
    binomial_forward_steps(1, snapshots_);  // checks the number
  }

  std::string name() const override {
    return "binomial, " + std::to_string(snapshots_) + " snapshots";
  }

  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    const Stages stages(graph, "binomial", {});
    const auto count = static_cast<std::uint32_t>(stages.count());
    check(graph, count);
    StageOrder order(graph);
    BinomialSchedule schedule(count, snapshots_);
    std::uint32_t at_hand = 0;
    while (const std::optional<ChainAction> action = schedule.next()) {
      switch (action->kind) {
        case ChainAction::Kind::store:
          break;  // values that are read later are held anyway
        case ChainAction::Kind::restore:
          at_hand = action->step;
          break;
        case ChainAction::Kind::advance:
          while (at_hand < action->step) order.run(stages.forward(at_hand++));
          break;
        case ChainAction::Kind::reverse:
          order.run(stages.forward(action->step));
          order.run(stages.backward(action->step));
      }
    }
    return {drop_after_last_use(graph, order.nodes())};
  }

  std::uint32_t states_of_loop(std::uint32_t) const override { return snapshots_; }

 private:
  void check(const Graph& graph, std::uint32_t stages) const {
    constexpr double most = 1e8;
    const auto passes = static_cast<double>(binomial_forward_steps(stages, snapshots_)) / stages;
    const double nodes = passes * graph.node_count();
    if (nodes <= most) return;
    throw ArgumentError("[binomial] " + std::to_string(snapshots_) + " snapshots of " +
                        std::to_string(stages) + " stages make a schedule of " +
                        std::to_string(static_cast<std::uint64_t>(nodes)) +
                        " steps; give more snapshots");
  }

  std::uint32_t snapshots_;
};

}  // namespace

PlannerPtr binomial(BinomialSettings settings) {
  return std::make_shared<BinomialPlanner>(settings);
}

}  // namespace palimpsest
