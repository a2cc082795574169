#include <oneapi/tbb/global_control.h>
#include <rapidcheck.h>

#include "tests/strategy/execution/random_model.h"
#include "tests/strategy/execution/runs.h"

namespace palimpsest::random_graphs_test {
namespace {

TEST_CASE("pipelines: random graphs have the same bits within any budget") {
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, 3);
  CHECK(rc::check("any graph", [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const int nodes = *rc::gen::inRange(4, 20);
    const int parts = *rc::gen::inRange(1, 6);
    const SmallModel model = random_model(seed, nodes);
    ExecutionStrategy strategy = pipeline_of(*rc::gen::inRange(1, 5), parts);
    if (*rc::gen::arbitrary<bool>()) {
      strategy.gradient = GradientMode::checkpointed;
      strategy.checkpoint_fraction = 0.5;
    }
    const Found expected = run(model, {.accumulation = parts}, 2, LossReduction::sum);
    const Found found = run(model, strategy, 2, LossReduction::sum);
    RC_ASSERT(have_same_bits(found, expected));
    const Report& report = found.report;
    RC_ASSERT(report.measured_peak <= report.predicted_peak);
    if (*rc::gen::inRange(0, 3) > 0) return;  // planning within budgets takes long
    strategy.run.memory_budget = report.predicted_peak * *rc::gen::inRange(1, 9) / 8;
    Found within;
    try {
      within = run(model, strategy, 2, LossReduction::sum);
    } catch (const BudgetError& error) {
      RC_ASSERT(error.smallest_feasible() > strategy.run.memory_budget);
      strategy.run.memory_budget = error.smallest_feasible();
      within = run(model, strategy, 2, LossReduction::sum);
    }
    RC_ASSERT(have_same_bits(within, expected));
    RC_ASSERT(within.report.measured_peak <= within.report.predicted_peak);
    RC_ASSERT(within.report.predicted_peak <= strategy.run.memory_budget);
  }));
}

}  // namespace
}  // namespace palimpsest::random_graphs_test
