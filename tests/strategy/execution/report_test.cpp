// The contents of execution reports.
#include <oneapi/tbb/global_control.h>

#include <algorithm>

#include "tests/strategy/execution/runs.h"

namespace palimpsest::report_test {
namespace {

struct FourThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

TEST_CASE_METHOD(FourThreads, "execution: reports add up what all parts count") {
  const std::vector<Tensor> parameters{Tensor::normal({16, 16}, 1, 0, 0.1)};
  const ModelFunction loss = [](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    const Var y = matmul(b[0], p[0]);
    const Var same = matmul(b[0], p[0]);
    const Var number = sqrt(tape.constant(Tensor::scalar(2)));
    return mean(y * same * number);
  };
  const auto report_of = [&](int workers, int micro_batches, std::int64_t examples) {
    ExecutionStrategy strategy{.accumulation = micro_batches};
    if (workers > 1) strategy.parallelism = ParallelMode::data_parallel;
    if (workers > 1) strategy.workers = workers;
    const std::vector<Tensor> batch{Tensor::uniform({examples, 16}, 2)};
    return Execution(strategy).gradients(loss, parameters, batch).report();
  };
  for (const auto& [workers, micro_batches] : {std::pair(2, 1), {1, 3}, {2, 3}}) {
    CAPTURE(workers, micro_batches);
    const auto parts = static_cast<std::uint32_t>(workers * micro_batches);
    const Report one = report_of(1, 1, 12 / parts);
    CHECK(one.common_subexpressions > 0);
    CHECK(one.folded_constants > 0);
    const Report report = report_of(workers, micro_batches, 12);
    CHECK(report.common_subexpressions == parts * one.common_subexpressions);
    CHECK(report.folded_constants == parts * one.folded_constants);
    CHECK(report.computed == parts * one.computed);
  }
}

TEST_CASE_METHOD(FourThreads, "execution: reports have what was computed while it was recorded") {
  const SmallModel network = perceptron();
  const auto calls_of = [](const Report& report, const std::string& operation) {
    int calls = 0;
    std::int64_t end = 0;
    for (const Report::Step& step : report.steps) {
      calls += step.operation == operation;
      CHECK(step.event.start >= end);
      end = step.event.end;
    }
    CHECK(report.kernel_seconds > 0);
    CHECK(report.run_seconds >= report.kernel_seconds);
    return calls;
  };
  const auto strategy_in = [](ExecutionMode mode) {
    ExecutionStrategy strategy{.mode = mode, .parallelism = ParallelMode::none};
    strategy.run.profile = true;
    if (mode == ExecutionMode::hybrid) strategy.stage.nodes = 3;
    return strategy;
  };
  const Report lazily = run(network, strategy_in(ExecutionMode::lazy)).report;
  const int products = calls_of(lazily, "matmul");
  for (const ExecutionMode mode : {ExecutionMode::eager, ExecutionMode::hybrid}) {
    const ExecutionStrategy strategy = strategy_in(mode);
    CAPTURE(strategy.summary());
    const Report report = run(network, strategy).report;
    CHECK(calls_of(report, "matmul") >= products);
    CHECK(report.computed >= lazily.computed);
    Execution values(strategy);
    values.value(network.loss, network.parameters, network.batch);
    CHECK(calls_of(values.report(), "matmul") > 0);
  }
}

TEST_CASE_METHOD(FourThreads, "execution: what an eager mode computes again is counted") {
  SmallModel model;
  model.batch = {Tensor::uniform({32, 16}, 2, -1, 1)};
  model.parameters = {Tensor::normal({16, 16}, 1, 0, 0.3)};
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    Var y = batch[0];
    for (int layer = 0; layer < 12; ++layer) y = tanh(matmul(y, p[0]));
    return mean(y * y);
  };
  ExecutionStrategy strategy{.mode = ExecutionMode::eager, .parallelism = ParallelMode::none};
  strategy.run.profile = true;
  const Report all = run(model, strategy).report;
  CHECK(all.recomputed == 0);
  CHECK(std::ranges::any_of(all.steps, [](const auto& step) { return step.event.live > 0; }));
  strategy.run.memory_budget = all.measured_peak / 3;
  const Report some = run(model, strategy).report;
  CHECK(some.computed > all.computed);
  CHECK(some.recomputed > 0);
  const auto again = std::ranges::count_if(some.steps, &Report::Step::recomputed);
  CHECK(again == some.recomputed);
}

TEST_CASE_METHOD(FourThreads, "execution: work done again while a model records is overhead") {
  SmallModel model;
  model.batch = {Tensor::uniform({32, 16}, 2, -1, 1)};
  model.parameters = {Tensor::normal({16, 16}, 1, 0, 0.3)};
  model.loss = [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    Var y = batch[0];
    for (int layer = 0; layer < 12; ++layer) {
      const auto scope = tape.scope(std::to_string(layer));
      y = tanh(matmul(y, p[0])) * y;
    }
    return mean(y * y);
  };
  ExecutionStrategy eager{.mode = ExecutionMode::eager, .parallelism = ParallelMode::none};
  const Report all = run(model, eager).report;
  CHECK(all.compute_overhead == 0);
  eager.run.memory_budget = all.measured_peak / 3;
  const ExecutionStrategy hybrid{.mode = ExecutionMode::hybrid, .parallelism = ParallelMode::none};
  for (const ExecutionStrategy& strategy : {eager, hybrid}) {
    CAPTURE(strategy.summary());
    const Report report = run(model, strategy).report;
    CHECK(report.recomputed > 0);
    CHECK(report.compute_overhead > 0.01);
    CHECK(report.compute_overhead < 1);
  }
}

TEST_CASE_METHOD(FourThreads, "execution: gradients that a user holds are in no report") {
  const SmallModel model = perceptron();
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    for (const int workers : {1, 2}) {
      ExecutionStrategy strategy{.mode = mode};
      if (workers > 1) strategy.parallelism = ParallelMode::data_parallel;
      if (workers > 1) strategy.workers = workers;
      CAPTURE(strategy.summary());
      Execution execution(strategy);
      const auto step = [&] {
        return execution.gradients(model.loss, model.parameters, model.batch);
      };
      const Gradients first = step();
      const Gradients second = step();
      const Gradients third = step();
      CHECK(third.report().measured_peak == second.report().measured_peak);
      CHECK(third.report().measured_peak <= first.report().measured_peak);
      // Nor does the peak include memory of a failed call, which holds none afterwards.
      const ModelFunction fails = [&](Tape& tape, std::span<const Var> p,
                                      std::span<const Var> batch) -> Var {
        model.loss(tape, p, batch).loss.value();
        throw FileError("cannot read");
      };
      CHECK_THROWS_AS(execution.gradients(fails, model.parameters, model.batch), FileError);
      CHECK(step().report().measured_peak == second.report().measured_peak);
    }
  }
}

TEST_CASE_METHOD(FourThreads, "execution: what a model traces and computes is not computed again") {
  const SmallModel model = perceptron();
  const ModelFunction loss = [&](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    const auto hidden = [](const Var& x, const Var& w) {
      const Var y = tanh(matmul(x, w));
      y.value();
      return exp(y) * y;
    };
    return mean(square(cos(checkpoint(hidden, batch[0], p[0]))));
  };
  for (const ExecutionMode mode : {ExecutionMode::eager, ExecutionMode::hybrid}) {
    Execution execution({.mode = mode, .parallelism = ParallelMode::none});
    const std::span<const Tensor> first(model.parameters.data(), 1);
    execution.value(loss, first, model.batch);
    CAPTURE(name_of(mode));
    CHECK(execution.report().recomputed == 0);
  }
}

TEST_CASE_METHOD(FourThreads, "execution: groups are counted, whoever runs them") {
  const SmallModel model = perceptron();
  const auto groups = [&](const ExecutionStrategy& strategy) {
    return run(model, strategy).report.groups;
  };
  CHECK(groups({}) > 0);
  CHECK(groups({.run = {.fuse = false}}) == 0);
  CHECK(groups(pipeline_of(2, 2)) > 0);
  CHECK(groups({.parallelism = ParallelMode::model_parallel, .devices = {{}, {}}}) > 0);
}

}  // namespace
}  // namespace palimpsest::report_test
