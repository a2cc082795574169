#include <oneapi/tbb/global_control.h>
#include <rapidcheck.h>

#include "tests/strategy/pipeline/runs.h"

namespace palimpsest {
namespace {

/// A model of one width whose values read any values before: parameters of which each may be read
/// anywhere, views, slices, numbers, random numbers and operations of several outputs.
SmallModel random_model(std::uint64_t seed, int nodes) {
  constexpr std::int64_t width = 6;
  std::vector<Tensor> parameters;
  for (std::uint64_t k = 0; k < 3; ++k) {
    parameters.push_back(Tensor::normal({width, width}, k, 0, 0.4, DType::f64));
  }
  const ModelFunction loss = [seed, nodes](Tape&, std::span<const Var> p,
                                           std::span<const Var> batch) {
    std::uint64_t state = seed;
    const auto draw = [&](std::size_t count) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<std::size_t>(state >> 33) % count;
    };
    std::vector<Var> values{batch[0]};
    const auto any = [&] {
      return values[values.size() - 1 - draw(std::min<std::size_t>(values.size(), 5))];
    };
    for (int k = 0; k < nodes; ++k) {
      const Var x = any();
      switch (draw(9)) {
        case 0:
          values.push_back(tanh(x));
          break;
        case 1:
          values.push_back(matmul(x, p[draw(3)]));
          break;
        case 2:
          values.push_back(x * any());
          break;
        case 3:
          values.push_back(x + any());
          break;
        case 4:
          values.push_back(dropout(x, 0.3));
          break;
        case 5:
          values.push_back(sin(reshape(reshape(x, {-1}), x.shape())));
          break;
        case 6: {
          const Var left = slice(x, 1, {.stop = 3});
          const Var right = slice(any(), 1, {.start = 3});
          values.push_back(concat({left, right}, 1));
          break;
        }
        case 7: {
          const std::vector<Var> parts = split(x, {2, 4}, 1);
          values.push_back(concat({exp(-parts[1] * parts[1]), parts[0]}, 1));
          break;
        }
        default:
          values.push_back(values[draw(values.size())] * 0.5);
      }
      values.back() = tanh(values.back());
    }
    Var total = sum(values.back());
    for (int k = 0; k < 2; ++k) total = total + sum(any() * any());
    return total;
  };
  return {"random", parameters, {Tensor::uniform({5, width}, 7, -1, 1, DType::f64)}, loss};
}

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
    if (*rc::gen::inRange(0, 3) > 0) return;  // plans within budgets take long
    strategy.memory_budget = report.predicted_peak * *rc::gen::inRange(1, 9) / 8;
    Found within;
    try {
      within = run(model, strategy, 2, LossReduction::sum);
    } catch (const BudgetError& error) {
      RC_ASSERT(error.smallest_feasible() > strategy.memory_budget);
      strategy.memory_budget = error.smallest_feasible();
      within = run(model, strategy, 2, LossReduction::sum);
    }
    RC_ASSERT(have_same_bits(within, expected));
    RC_ASSERT(within.report.measured_peak <= within.report.predicted_peak);
    RC_ASSERT(within.report.predicted_peak <= strategy.memory_budget);
  }));
}

}  // namespace
}  // namespace palimpsest
