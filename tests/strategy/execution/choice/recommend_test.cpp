#include "strategy/execution/choice/recommend.h"

#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "palimpsest.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/strategy/execution/models.h"

namespace palimpsest::recommend_test {
namespace {

using Catch::Matchers::Contains;

struct TwoThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 2};
};

Workload workload_of(const SmallModel& model, bool training = true) {
  return {model.loss, model.parameters, model.batch, training};
}

RecommendOptions within(Bytes memory) { return {.memory = memory, .rates = {.machine = {}}}; }

/// Runs the recommended strategy and checks that it keeps within the given memory.
void check_runs(const SmallModel& model, const Recommendation& found, Bytes memory) {
  Execution execution(found.strategy);
  const Report report = execution.gradients(model.loss, model.parameters, model.batch).report();
  CHECK(report.measured_peak <= memory);
  CHECK(report.predicted_peak <= memory);
  CHECK(report.budget == memory);
}

TEST_CASE_METHOD(TwoThreads, "recommend: the fastest that fits, down to the smallest there is") {
  for (const SmallModel& model : {perceptron(), small_transformer(), heat()}) {
    // Planning this model takes most of the time.
    if (model.name == small_transformer().name && cases(100) < 100) continue;
    CAPTURE(model.name);
    const Recommendation ample = recommend(workload_of(model), within(1_GiB));
    check_runs(model, ample, 1_GiB);
    CHECK(ample.estimate.compute_overhead <= 0);
    double before = 0;
    const Bytes steps = 3 + cases(5);
    for (Bytes memory = ample.estimate.peak;; memory = memory * (steps - 2) / steps) {
      try {
        const Recommendation found = recommend(workload_of(model), within(memory));
        check_runs(model, found, memory);
        CHECK(found.estimate.seconds >= before * 0.99);
        before = found.estimate.seconds;
        for (const Considered& each : found.considered) {
          if (!each.estimate) {
            CHECK(each.smallest > memory);
            continue;
          }
          CHECK(each.estimate->peak <= memory);
          CHECK(each.estimate->seconds >= 0.99 * found.estimate.seconds);
        }
      } catch (const BudgetError& error) {
        CHECK(error.budget() == memory);
        const Bytes smallest = error.smallest_feasible();
        CHECK(smallest > memory);
        check_runs(model, recommend(workload_of(model), within(smallest)), smallest);
        break;
      }
    }
  }
}

TEST_CASE_METHOD(TwoThreads,
                 "recommend: the strategy that an error names has the memory it needs") {
  const Workload workload = workload_of(heat());
  try {
    recommend(workload, within(1));
    FAIL("nothing fits a byte");
  } catch (const BudgetError& error) {
    const Bytes smallest = error.smallest_feasible();
    const std::string message = error.what();
    CHECK_THAT(message, Contains("is " + std::to_string(smallest) + " bytes, for:"));
    CHECK_THAT(message, Contains("within " + format_bytes(smallest)));
    CHECK_THAT(message, !Contains("within 1 B"));
  }
}

TEST_CASE_METHOD(TwoThreads, "recommend: batches are cut where that is allowed and needed") {
  Workload workload = workload_of(heat());
  const auto smallest = [&] {
    try {
      recommend(workload, within(1));
    } catch (const BudgetError& error) {
      return error.smallest_feasible();
    }
    return Bytes{0};
  };
  const Bytes with_cuts = smallest();
  CHECK(with_cuts > 0);
  CHECK(recommend(workload, within(with_cuts)).strategy.accumulation > 1);
  workload.may_be_cut = false;
  const Bytes whole = smallest();
  CHECK(with_cuts < whole);
  for (const Considered& each : recommend(workload, within(whole)).considered) {
    CHECK(each.strategy.accumulation == 1);
    CHECK(each.strategy.parallelism != ParallelMode::data_parallel);
  }
  workload.may_be_cut = true;
  workload.batch = {Tensor({0, 24}), Tensor({0, 24})};
  CHECK_THROWS_WITH(recommend(workload, within(1_MiB)), Contains("[mean]"));  // the model's
}

TEST_CASE_METHOD(TwoThreads, "recommend: every kind of strategy is considered") {
  const SmallModel model = perceptron();
  RecommendOptions options = within(1_GiB);
  options.precisions = {Precision{}};
  const auto count = [](const Recommendation& found, auto is) {
    return std::ranges::count_if(found.considered,
                                 [&](const Considered& each) { return is(each.strategy); });
  };
  const auto is_eager = [](const auto& s) { return s.mode == ExecutionMode::eager; };
  const auto is_hybrid = [](const auto& s) { return s.mode == ExecutionMode::hybrid; };
  const auto has_devices = [](const auto& s) { return s.devices.size() == 2; };
  const auto has_interval = [](const auto& s) { return s.checkpoint_interval.has_value(); };
  const auto has_fraction = [](const auto& s) { return s.checkpoint_fraction.has_value(); };
  const Recommendation training = recommend(workload_of(model), options);
  CHECK(count(training, is_eager) == 2);  // in each precision
  CHECK(count(training, is_hybrid) == 2);
  CHECK(count(training, has_devices) == 2);
  CHECK(count(training, has_interval) == 0);
  CHECK(training.estimate.is_planned);

  const Workload state = workload_of(heat());
  const Bytes whole = estimate({}, state, {.machine = {}}).peak;
  const Recommendation tight = recommend(state, within(whole * 6 / 10));
  CHECK(count(tight, has_interval) == 2);
  CHECK(count(tight, has_fraction) == 2);
  CHECK(count(tight, is_eager) == 0);

  Workload values{
      .parameters = {Tensor::ones({8, 4})}, .batch = {Tensor::ones({32, 8})}, .training = false};
  values.model = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    return tanh(sin(matmul(batch[0], p[0])) * 2.0);
  };
  const Recommendation inference = recommend(values, within(1_GiB));
  CHECK(count(inference, is_eager) == 1);
  CHECK(count(inference, has_devices) == 1);
  CHECK(count(inference, has_interval) == 0);
  const auto cuts = [&](const Recommendation& found) {
    return std::pair(count(found, [](const auto& s) { return s.replicas() > 1; }),
                     count(found, [](const auto& s) { return s.accumulation > 1; }));
  };
  const auto [replicas, pipelines] = cuts(inference);
  CHECK(replicas == 1);
  CHECK(pipelines > 0);
  const Tensor whole_value = Execution().value(values.model, values.parameters, values.batch);
  for (const Considered& each : inference.considered) {
    CAPTURE(each.strategy.summary());
    Execution execution(each.strategy);
    const Tensor value = execution.value(values.model, values.parameters, values.batch);
    REQUIRE(value.shape() == whole_value.shape());
    for (std::int64_t i = 0; i < value.elements(); ++i) {
      CHECK(std::abs(value.at(i) - whole_value.at(i)) <= 1e-6);
    }
    CHECK(execution.report().measured_peak <= each.estimate.value().peak);
  }

  // The model's value for a part is not a part of its value for the whole.
  Workload uncut = values;
  uncut.may_be_cut = false;
  CHECK(cuts(recommend(uncut, within(1_GiB))) == std::pair<std::ptrdiff_t, std::ptrdiff_t>());
  uncut = values;
  uncut.model = [&](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    return mean(values.model(tape, p, batch).loss, Axes{0});
  };
  CHECK(cuts(recommend(uncut, within(1_GiB))) == std::pair<std::ptrdiff_t, std::ptrdiff_t>());
  uncut = values;
  uncut.batch.push_back(Tensor::ones({3, 3}));
  CHECK(cuts(recommend(uncut, within(1_GiB))) == std::pair<std::ptrdiff_t, std::ptrdiff_t>());
  uncut = values;
  uncut.model = [&](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    const Var rows = values.model(tape, p, batch).loss;
    return matmul(rows, transpose(rows));
  };
  CHECK(cuts(recommend(uncut, within(1_GiB))) == std::pair<std::ptrdiff_t, std::ptrdiff_t>());
  uncut.model = [&](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    return reshape(values.model(tape, p, batch).loss, {32, 2, 2});
  };
  CHECK(cuts(recommend(uncut, within(1_GiB))) == std::pair<std::ptrdiff_t, std::ptrdiff_t>());
}

TEST_CASE_METHOD(TwoThreads, "recommend: for graphs and for sizes alone") {
  const Graph graph =
      graph_of({.layers = 12, .parameters = 1_MiB, .activations = 4_MiB, .seconds = 1e-2});
  const Recommendation ample = recommend(graph, within(1_GiB));
  CHECK(ample.estimate.compute_overhead <= 0);
  CHECK(ample.considered.size() == 3);  // no candidate recomputes
  const Bytes tight = ample.estimate.peak / 2;
  const Recommendation found = recommend(graph, within(tight));
  CHECK(found.estimate.peak <= tight);
  CHECK(found.estimate.compute_overhead > 0);
  CHECK(found.strategy.run.memory_budget == tight);
  try {
    recommend(graph, within(1));
    FAIL("nothing fits a byte");
  } catch (const BudgetError& error) {
    const Bytes smallest = error.smallest_feasible();
    CHECK(recommend(graph, within(smallest)).estimate.peak <= smallest);
  }
  RecommendOptions options = within(1_GiB);
  options.precisions = {Precision{}};
  CHECK_THROWS_WITH(recommend(graph, options), Contains("precision"));
  const Graph values = graph_of({.layers = 3, .activations = 100, .training = false});
  CHECK(recommend(values, within(1_MiB)).strategy.gradient == GradientMode::none);
  // Layers without a time: no strategy is faster.
  const std::string reason = recommend(graph_of({.layers = 3}), within(1_MiB)).reason;
  CHECK_THAT(reason, Contains("or equally fast and simpler"));
}

/// Layers that are too small to be split among threads.
SmallModel narrow() {
  constexpr std::int64_t width = 64;
  std::vector<Tensor> layers;
  for (std::uint64_t k = 0; k < 24; ++k) {
    layers.push_back(Tensor::normal({width, width}, k, 0, 0.1));
  }
  return {"narrow",
          layers,
          {Tensor::uniform({64, width}, 30, -1, 1)},
          [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
            Var y = batch[0];
            for (const Var& layer : p) y = tanh(matmul(y, layer));
            return mean(y * y);
          }};
}

std::vector<Considered> pipelines(const Recommendation& found) {
  std::vector<Considered> list = found.considered;
  std::erase_if(list, [](const Considered& each) {
    return each.strategy.parallelism != ParallelMode::pipeline;
  });
  return list;
}

TEST_CASE_METHOD(TwoThreads, "recommend: pipelines where examples and threads are enough") {
  const SmallModel model = narrow();
  Workload workload = workload_of(model);
  // With these rates, small micro-batches are as good as large ones.
  RecommendOptions options = within(1_GiB);
  options.rates.machine = {.bytes_per_second = 1e13, .seconds_per_node = 1e-9};
  const std::vector<Considered> found = pipelines(recommend(workload, options));
  REQUIRE(found.size() == 2);
  for (const Considered& each : found) {
    CHECK(each.strategy.stages == 2);
    CHECK((each.strategy.accumulation == 4 || each.strategy.accumulation == 8));
  }
  // Two replicas each have their own gradients.
  options.memory = found[0].estimate->peak * 11 / 10;
  const Recommendation chosen = recommend(workload, options);
  CHECK(chosen.strategy.parallelism == ParallelMode::pipeline);
  check_runs(model, chosen, options.memory);

  workload.may_be_cut = false;
  CHECK(pipelines(recommend(workload, options)).empty());
  workload.may_be_cut = true;
  options.threads = 1;
  CHECK(pipelines(recommend(workload, options)).empty());
  options.threads = 2;
  options.most_micro_batches = 3;
  CHECK(pipelines(recommend(workload, options)).empty());
  options.most_micro_batches = 64;
  CHECK_FALSE(pipelines(recommend(workload, options)).empty());
  workload.model = [&](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    const Var loss = model.loss(tape, p, batch).loss;
    return loss.value().item() < 0 ? -loss : loss;
  };
  CHECK(pipelines(recommend(workload, options)).empty());
  workload.model = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    return mean(batch[0] + sum(p[0]));
  };
  workload.parameters.resize(1);
  CHECK_NOTHROW(recommend(workload, options));
}

TEST_CASE_METHOD(TwoThreads, "recommend: what a model cannot be cut into is left out") {
  const auto are_whole = [](const Recommendation& made) {
    return std::ranges::all_of(made.considered, [](const Considered& each) {
      return each.strategy.accumulation == 1 && each.strategy.replicas() == 1;
    });
  };
  const SmallModel model = heat();
  const Workload holding{[&](Tape& tape, std::span<const Var> p, std::span<const Var>) {
                           const Var data[] = {tape.constant(model.batch[0]),
                                               tape.constant(model.batch[1])};
                           return model.loss(tape, p, data);
                         },
                         model.parameters};
  CHECK(are_whole(recommend(holding, within(1_GiB))));
  const Workload recording{[&](Tape& tape, std::span<const Var>, std::span<const Var> batch) {
                             const Var own[] = {tape.parameter(model.parameters[0])};
                             return model.loss(tape, own, batch);
                           },
                           {},
                           model.batch};
  CHECK(are_whole(recommend(recording, within(1_GiB))));
}

TEST_CASE_METHOD(TwoThreads, "recommend: values, precisions and threads") {
  const SmallModel model = small_transformer();
  const Recommendation values = recommend(workload_of(model, false), within(1_GiB));
  CHECK(values.strategy.gradient == GradientMode::none);
  Execution execution(values.strategy);
  execution.value(model.loss, model.parameters, model.batch);
  CHECK(execution.report().predicted_peak <= 1_GiB);
  CHECK(values.estimate.peak < recommend(workload_of(model), within(1_GiB)).estimate.peak);

  RecommendOptions options = within(1_GiB);
  options.precisions = {Precision{}};
  options.threads = 1;
  const Recommendation found = recommend(workload_of(model), options);
  CHECK(std::ranges::any_of(found.considered, [](const Considered& each) {
    return each.strategy.precision == Precision{};
  }));
  for (const Considered& each : found.considered) {
    CHECK(each.strategy.thread_count() == 1);
    CHECK(each.strategy.replicas() == 1);
  }
}

TEST_CASE_METHOD(TwoThreads, "recommend: says what was considered and why one was chosen") {
  const SmallModel model = heat();
  const Recommendation found = recommend(workload_of(model), within(1_MiB));
  std::ostringstream stream;
  stream << found;
  for (const char* part :
       {"time", "peak", "strategy", "fastest of", "fit 1.00 MiB", "lazy", " ms"}) {
    CHECK_THAT(stream.str(), Contains(part));
  }
  CHECK_THROWS_WITH(recommend(workload_of(model), {.memory = -1}), Contains("memory is -1"));
  CHECK_THROWS_WITH(recommend(workload_of(model), {.most_micro_batches = 0}),
                    Contains("most_micro_batches is 0"));
  const Recommendation of_free_memory = recommend(workload_of(model), {.rates = {.machine = {}}});
  CHECK(of_free_memory.strategy.run.memory_budget > 1_MiB);
}

}  // namespace
}  // namespace palimpsest::recommend_test
