// Every valid combination of modes, gradients, precisions, memory and parallelism on one model, and
// every pair of them on two others.
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "palimpsest.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/strategy/execution/models.h"

namespace palimpsest::matrix_test {
namespace {

struct Found {
  double loss = 0;
  std::vector<Tensor> gradients;
  Report report;
};

/// The second of two steps, so that plans and memory are those kept from the first. With overflows,
/// the first step without one.
Found found_by(const SmallModel& model, const ExecutionStrategy& strategy) {
  Execution execution(strategy);
  Found found;
  for (int step = 0; step < 2 || (found.report.overflowed && step < 20); ++step) {
    const Gradients g = execution.gradients(model.loss, model.parameters, model.batch);
    found = {g.loss().item(), {}, g.report()};
    for (const Gradients::Entry& entry : g) found.gradients.push_back(entry.gradient.clone());
  }
  return found;
}

bool is_valid(const ExecutionStrategy& strategy) {
  try {
    require_valid(strategy);
    return true;
  } catch (const ArgumentError&) {
    return false;
  }
}

std::vector<ExecutionStrategy> gradients_of(const ExecutionStrategy& base, double fraction) {
  std::vector<ExecutionStrategy> list(5, base);
  list[1].gradient = GradientMode::full;
  for (int i = 2; i < 5; ++i)
    list[static_cast<std::size_t>(i)].gradient = GradientMode::checkpointed;
  list[2].checkpoint_interval = 3;
  list[3].checkpoint_fraction = fraction;
  list[4].checkpoint_planner = "square_root";
  return list;
}

/// All valid strategies in one precision.
std::vector<ExecutionStrategy> strategies_in(const std::optional<Precision>& precision,
                                             double fraction) {
  std::vector<ExecutionStrategy> list;
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    for (const AllocationPolicy memory : {AllocationPolicy::minimal_peak, AllocationPolicy::pooled,
                                          AllocationPolicy::standard, AllocationPolicy::cached}) {
      for (const ParallelMode parallelism :
           {ParallelMode::none, ParallelMode::automatic, ParallelMode::data_parallel,
            ParallelMode::pipeline, ParallelMode::model_parallel}) {
        ExecutionStrategy base{.mode = mode,
                               .precision = precision,
                               .parallelism = parallelism,
                               .run = {.memory = memory}};
        if (mode == ExecutionMode::hybrid) base.stage.nodes = 5;
        if (parallelism == ParallelMode::data_parallel) base.workers = 2;
        if (parallelism == ParallelMode::pipeline) base.stages = base.accumulation = 2;
        if (parallelism == ParallelMode::model_parallel) base.devices.resize(2);
        std::ranges::copy_if(gradients_of(base, fraction), std::back_inserter(list), is_valid);
      }
    }
  }
  return list;
}

/// A subset that contains every pair of choices that occurs in `all`.
std::vector<ExecutionStrategy> pairs_of(std::span<const ExecutionStrategy> all) {
  std::set<std::array<std::string, 4>> seen;
  std::vector<ExecutionStrategy> list;
  for (const ExecutionStrategy& s : all) {
    std::string gradient(name_of(s.gradient));
    if (s.checkpoint_interval) gradient += " by interval";
    if (s.checkpoint_fraction) gradient += " by fraction";
    const std::array<std::string, 4> choices{std::string(name_of(s.mode)), gradient,
                                             std::string(name_of(s.run.memory)),
                                             std::string(name_of(s.parallelism))};
    bool is_new = false;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        std::array<std::string, 4> pair;
        pair[i] = choices[i];
        pair[k] = choices[k];
        is_new |= seen.insert(pair).second;
      }
    }
    if (is_new) list.push_back(s);
  }
  return list;
}

/// The largest difference over all gradients, relative to the largest element of the respective
/// gradient.
double difference(const Found& a, const Found& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    double largest = 0;
    double apart = 0;
    for (std::int64_t k = 0; k < a.gradients[i].elements(); ++k) {
      largest = std::max(largest, std::abs(b.gradients[i].at(k)));
      apart = std::max(apart, std::abs(a.gradients[i].at(k) - b.gradients[i].at(k)));
    }
    most = std::max(most, apart / largest);
  }
  return most;
}

struct InPrecision {
  std::optional<Precision> precision;
  double tolerance;  ///< of gradients, against f64
};

const InPrecision precisions[] = {
    {std::nullopt, 1e-5},
    {Precision{PrecisionKind::full}, 1e-6},
    {Precision{PrecisionKind::single}, 1e-5},
    {Precision{PrecisionKind::half, DType::bf16}, 0.06},
    {Precision{PrecisionKind::half, DType::f16}, 0.01},
    {Precision{PrecisionKind::mixed, DType::bf16}, 0.04},
    {Precision{PrecisionKind::mixed, DType::f16}, 0.006},
};

struct TwoThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 2};
};

/// `fraction` limits the memory for checkpointing. If it is too small, as for a perceptron, finding
/// the smallest budget takes a while.
template <class Choose>
void check_model(const SmallModel& model, double fraction, Choose choose) {
  const Found exact = found_by(model, {.precision = Precision{PrecisionKind::full}});
  for (const auto& [precision, tolerance] : precisions) {
    const Found whole = found_by(model, {.precision = precision});
    CAPTURE(model.name, whole.report.precision);
    CHECK(std::abs(whole.loss - exact.loss) <= tolerance * std::abs(exact.loss));
    CHECK(difference(whole, exact) <= tolerance);
    // Parts change the sums, but the same number of parts always gives the same sums.
    const Found halves = found_by(model, {.precision = precision, .accumulation = 2});
    CHECK(difference(halves, exact) <= tolerance);
    for (const ExecutionStrategy& strategy : choose(strategies_in(precision, fraction))) {
      const bool has_shards = strategy.parallelism == ParallelMode::data_parallel;
      const Found& expected = has_shards || strategy.accumulation == 2 ? halves : whole;
      CAPTURE(strategy.summary());
      const Found found = found_by(model, strategy);
      CHECK(found.loss == expected.loss);
      REQUIRE(found.gradients.size() == expected.gradients.size());
      for (std::size_t i = 0; i < found.gradients.size(); ++i) {
        CHECK(same_bits(found.gradients[i], expected.gradients[i]));
      }
      CHECK_FALSE(found.report.overflowed);
      CHECK(found.report.measured_peak <= found.report.predicted_peak);
      CHECK(found.report.memory == strategy.run.memory);
      CHECK(found.report.precision == (precision ? precision->summary() : ""));
      CHECK(found.report.replicas == (has_shards ? 2 : 1));
      CHECK(found.report.threads == (strategy.parallelism == ParallelMode::none ? 1 : 2));
    }
  }
}

TEST_CASE("matrix: no combination that is valid is left out") {
  // 3 modes and 5 kinds of gradients: eager refuses the three that plan, and hybrid refuses full.
  // Neither caches results. Pipelines and devices require lazy mode and one memory handling.
  CHECK(strategies_in({}, 0.4).size() == std::size_t{5 * 4 * 3 + (2 + 4) * 3 * 3 + 5 + 5});
}

TEST_CASE_METHOD(TwoThreads, "matrix: every combination on a perceptron") {
  // With fewer cases, takes every `step`-th strategy, different ones in each precision.
  const int step = std::max(1, 100 / cases(100));
  int first = 0;
  check_model(perceptron(), 0.4, [&](const std::vector<ExecutionStrategy>& all) {
    std::vector<ExecutionStrategy> chosen;
    const int count = static_cast<int>(all.size());
    for (int i = first++ % step; i < count; i += step) {
      chosen.push_back(all[static_cast<std::size_t>(i)]);
    }
    return chosen;
  });
}
TEST_CASE_METHOD(TwoThreads, "matrix: every pair of choices on a transformer") {
  check_model(small_transformer(), 0.8, pairs_of);
}
TEST_CASE_METHOD(TwoThreads, "matrix: every pair of choices on steps of heat") {
  check_model(heat(), 0.8, pairs_of);
}

TEST_CASE_METHOD(TwoThreads, "matrix: values without gradients, with and without fusion") {
  const SmallModel model = perceptron();
  const ModelFunction outputs = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    return matmul(tanh(matmul(batch[0], p[0]) + p[1]), p[2]);
  };
  const auto value = [&](const ExecutionStrategy& strategy) {
    Execution execution(strategy);
    execution.value(outputs, model.parameters, model.batch);
    const Tensor found = execution.value(outputs, model.parameters, model.batch);
    CHECK(execution.report().measured_peak <= execution.report().predicted_peak);
    CHECK(execution.report().predicted_peak <= strategy.run.memory_budget);
    return found;
  };
  for (const auto& [precision, tolerance] : precisions) {
    ExecutionStrategy values{.precision = precision, .gradient = GradientMode::none};
    const Tensor whole = value(values);
    values.parallelism = ParallelMode::data_parallel;
    values.workers = 2;
    const Tensor halves = value(values);
    CHECK(difference({0, {halves}, {}}, {0, {whole}, {}}) <= tolerance);
    for (ExecutionStrategy strategy : strategies_in(precision, 0.4)) {
      if (strategy.gradient != GradientMode::automatic) continue;
      strategy.gradient = GradientMode::none;
      const bool in_parts = strategy.parallelism == ParallelMode::data_parallel ||
                            strategy.parallelism == ParallelMode::pipeline;
      for (const bool fusion : {true, false}) {
        for (const Bytes budget : {unlimited, 32_KiB}) {
          strategy.run.fuse = fusion;
          strategy.run.memory_budget = budget;
          CAPTURE(strategy.summary());
          CHECK(same_bits(value(strategy), in_parts ? halves : whole));
        }
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::matrix_test
