#include "strategy/base/batch_parts.h"
#include "strategy/mpi/rank_link.h"
#include "tests/strategy/mpi/model.h"
#include "tests/strategy/mpi/ranks.h"

namespace palimpsest::rank_outputs_test {
namespace {

using Catch::Matchers::Contains;

/// A model with auxiliary outputs that updates two tensors.
struct WithOutputs {
  Model model{DType::f32, 13, 4};
  Tensor running = Tensor::ones({Model::width});
  Tensor last = Tensor::zeros({Model::width});
  bool updates = true;

  LossAndOutputs record(std::span<const Var> p, std::span<const Var> b) const {
    Tape& tape = b[0].tape();
    const Var hidden = tanh(matmul(b[0], p[0]) + p[1]);
    if (updates) {
      tape.update_after_run(running, mean(hidden, {0}), 0.1);
      tape.update_after_run(last, mean(abs(hidden), {0}));
      tape.update_after_run(running, mean(b[0], {0}), 0.5);
    }
    // Outputs that are leaves, occur twice, or are the loss.
    return {model.record(p, b), {hidden, sum(hidden), b[0], hidden}};
  }
  ModelFunction loss() const {
    return [this](Tape&, std::span<const Var> p, std::span<const Var> b) { return record(p, b); };
  }
};

struct FoundOutputs {
  Found last;
  std::vector<Tensor> outputs;
  Tensor running;
  Tensor last_mean;
};

template <class Runner>
FoundOutputs three_steps(Runner& runner, const WithOutputs& model) {
  FoundOutputs found;
  for (int step = 0; step < 3; ++step) {
    const Gradients made =
        runner.gradients(model.loss(), model.model.parameters, model.model.batch);
    found.last = Found(made);
    found.outputs.clear();
    for (const Tensor& output : made.outputs()) found.outputs.push_back(output.clone());
  }
  found.running = model.running;
  found.last_mean = model.last;
  return found;
}

FoundOutputs on_ranks(const ExecutionStrategy& strategy, const DistributedOptions& options) {
  const WithOutputs model;
  DistributedExecution execution(world(), strategy, options);
  const FoundOutputs found = three_steps(execution, model);
  execution.verify(std::vector{found.running, found.last_mean});
  return found;
}

FoundOutputs in_one_process(ExecutionStrategy strategy) {
  const WithOutputs model;
  Execution execution(std::move(strategy));
  return three_steps(execution, model);
}

bool have_same_updates(const FoundOutputs& a, const FoundOutputs& b) {
  return same_bits(a.running, b.running) && same_bits(a.last_mean, b.last_mean);
}

/// The rows of `whole` that are those of this rank.
Tensor rows_of_rank(const Tensor& whole) {
  return part_of({&whole, 1}, world().rank(), world().size())[0].clone();
}

}  // namespace

TEST_CASE("ranks return the outputs of their own examples, and update by the mean of all") {
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    for (const bool is_precise : {false, true}) {
      ExecutionStrategy strategy{.mode = mode};
      if (mode == ExecutionMode::hybrid) strategy.stage = {.nodes = 3};
      if (is_precise) strategy.precision = Precision{PrecisionKind::mixed, DType::f16};
      CAPTURE(strategy.summary());
      ExecutionStrategy alone = strategy;
      alone.parallelism = ParallelMode::data_parallel;
      alone.workers = world().size();
      const FoundOutputs expected = in_one_process(alone);
      const FoundOutputs found = on_ranks(strategy, {.deterministic = true, .bucket_bytes = 500});
      CHECK(same(found.last, expected.last));
      CHECK(have_same_updates(found, expected));
      CHECK(found.outputs.size() == 4);
      for (const std::size_t i : {0, 2, 3}) {
        CHECK(same_bits(found.outputs[i], rows_of_rank(expected.outputs[i])));
      }
      const Tensor& sums = expected.outputs[1];
      CHECK(found.outputs[1].at(0) == sums.at(sums.elements() > 1 ? world().rank() : 0));
    }
  }
}

TEST_CASE("ranks join the outputs of their micro-batches, and update by the mean of all") {
  const FoundOutputs expected = in_one_process({});
  const FoundOutputs found = on_ranks({.accumulation = 3}, {});
  CHECK(distance(found.last, expected.last) < 2e-5);
  CHECK(found.outputs[1].shape() == Shape{3});
  std::int64_t rows = 0;
  for (const std::int64_t each : world().link().gather(found.outputs[0].shape()[0])) rows += each;
  CHECK(rows == 13);
  for (int i = 0; i < Model::width; ++i) {
    CHECK(std::abs(found.running.at(i) - expected.running.at(i)) < 1e-6);
    CHECK(std::abs(found.last_mean.at(i) - expected.last_mean.at(i)) < 1e-6);
  }
}

TEST_CASE("all stages of a pipeline over ranks return all outputs") {
  for (const int micro_batches : {1, 4}) {
    const FoundOutputs expected = in_one_process({.accumulation = micro_batches});
    const FoundOutputs found =
        on_ranks({.accumulation = micro_batches, .parallelism = ParallelMode::pipeline}, {});
    CHECK(same(found.last, expected.last));
    CHECK(have_same_updates(found, expected));
    CHECK(found.outputs.size() == 4);
    for (std::size_t i = 0; i < found.outputs.size(); ++i) {
      CHECK(same_bits(found.outputs[i], expected.outputs[i]));
    }
    CHECK(found.last.report.measured_peak <= found.last.report.predicted_peak);
  }
}

TEST_CASE("ranks that record different updates are an error, and update nothing") {
  if (world().size() == 1) return;
  for (const ParallelMode parallelism : {ParallelMode::automatic, ParallelMode::pipeline}) {
    WithOutputs model;
    model.updates = world().rank() != 1;
    DistributedExecution execution(world(), {.parallelism = parallelism});
    const Failure failure = failure_of(
        [&] { execution.gradients(model.loss(), model.model.parameters, model.model.batch); });
    CHECK(failure.rank == 1);
    CHECK_THAT(failure.of_other, Contains("record one program on all ranks"));
    CHECK(same_bits(model.last, Tensor::zeros({Model::width})));
  }
}

TEST_CASE("a step that fails on one rank updates nothing on any") {
  for (const ParallelMode parallelism : {ParallelMode::automatic, ParallelMode::pipeline}) {
    const WithOutputs model;
    DistributedExecution execution(world(), {.accumulation = 2, .parallelism = parallelism});
    int calls = 0;
    const ModelFunction failing = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      if (++calls == 2 && world().rank() == 0) throw std::runtime_error("out of paper");
      return model.record(p, b);
    };
    const Failure failure = failure_of(
        [&] { execution.gradients(failing, model.model.parameters, model.model.batch); });
    CHECK_THAT(failure.own + failure.of_other, Contains("out of paper"));
    CHECK(same_bits(model.last, Tensor::zeros({Model::width})));
    CHECK(same_bits(model.running, Tensor::ones({Model::width})));
    execution.gradients(model.loss(), model.model.parameters, model.model.batch);
    CHECK_FALSE(same_bits(model.last, Tensor::zeros({Model::width})));
  }
}

}  // namespace palimpsest::rank_outputs_test
