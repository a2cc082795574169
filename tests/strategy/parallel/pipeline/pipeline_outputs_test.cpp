#include "nn/nn.h"
#include "tests/strategy/execution/outputs.h"

namespace palimpsest::pipeline_outputs_test {

using Catch::Matchers::Contains;

TEST_CASE("pipelines: outputs and updates have the bits of plain runs") {
  for (const int parts : {1, 3, 5}) {  // of 12 examples
    const FoundOutputs expected = run_with_outputs({.accumulation = parts});
    REQUIRE(expected.outputs.size() == ModelWithOutputs::outputs);
    for (const int stages : {1, 2, 4}) {
      for (const GradientMode gradient :
           {GradientMode::automatic, GradientMode::full, GradientMode::checkpointed}) {
        CAPTURE(parts, stages, gradient);
        ExecutionStrategy strategy = pipeline_of(stages, parts);
        strategy.gradient = gradient;
        if (gradient == GradientMode::checkpointed) strategy.checkpoint_interval = 2;
        strategy.run.threads = 2;
        const FoundOutputs found = run_with_outputs(strategy);
        CHECK(have_same_bits(found, expected));
        CHECK(found.last.report.plan_reused);
        CHECK(found.last.report.measured_peak <= found.last.report.predicted_peak);
      }
    }
  }
}

TEST_CASE("pipelines: outputs in other precisions have the bits of plain runs") {
  for (const DType half : {DType::bf16, DType::f16}) {
    ExecutionStrategy plain{.precision = Precision{PrecisionKind::mixed, half}, .accumulation = 3};
    ExecutionStrategy piped = pipeline_of(3, 3);
    piped.precision = plain.precision;
    CHECK(have_same_bits(run_with_outputs(piped), run_with_outputs(plain)));
  }
}

TEST_CASE("pipelines: outputs count towards the budget") {
  const auto within = [](Bytes budget) {
    ExecutionStrategy strategy = pipeline_of(3, 4);
    strategy.run.memory_budget = budget;
    return run_with_outputs(strategy);
  };
  const FoundOutputs expected = run_with_outputs({.accumulation = 4});
  Bytes joined = 0;
  for (const Tensor& output : expected.outputs) joined += output.bytes();
  const Bytes least = budget_named_by(within);
  CHECK(least > 2 * joined);  // of the parts, and joined
  const FoundOutputs found = within(least);
  CHECK(have_same_bits(found, expected));
  CHECK(found.last.report.predicted_peak <= least);
  CHECK(found.last.report.measured_peak <= found.last.report.predicted_peak);
}

TEST_CASE("pipelines and devices: batch norm updates its running statistics once per step") {
  const auto run = [](const ExecutionStrategy& strategy) {
    nn::Parameters parameters(7);
    const nn::Linear first(parameters / "first", 8, 6);
    const nn::BatchNormLayer norm(parameters / "norm", 6);
    const nn::Linear second(parameters / "second", 6, 2);
    const ModelFunction loss = [&](Tape&, std::span<const Var>, std::span<const Var> b) {
      return mean(square(second(relu(norm(first(b[0]))))));
    };
    Execution execution(strategy);
    const std::vector<Tensor> batch{Tensor::normal({12, 8}, 4)};
    for (int step = 0; step < 3; ++step) {
      execution.gradients(loss, parameters.tensors(), batch);
    }
    std::vector<Tensor> statistics;
    for (const nn::Parameter& each : parameters.all()) statistics.push_back(each.tensor().clone());
    return statistics;
  };
  const std::vector<Tensor> expected = run({.accumulation = 2});
  ExecutionStrategy recomputing = pipeline_of(2, 2);
  recomputing.gradient = GradientMode::checkpointed;
  recomputing.checkpoint_interval = 2;
  ExecutionStrategy placed{.accumulation = 2, .parallelism = ParallelMode::model_parallel};
  placed.devices = {Device{}, Device{}};
  for (const ExecutionStrategy& strategy : {pipeline_of(2, 2), recomputing, placed}) {
    const std::vector<Tensor> found = run(strategy);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_bits(found[i], expected[i]));
  }
}

TEST_CASE("pipelines: outputs that do not fit together are refused before any work") {
  const ModelWithOutputs model;
  Execution execution(pipeline_of(2, 5));  // parts of 3, 3, 2, 2 and 2 examples
  const ModelFunction shapes = [&](Tape& tape, std::span<const Var> p,
                                   std::span<const Var> b) -> LossAndOutputs {
    const LossAndOutputs made = model.record(tape, p, b);
    return {made.loss, {transpose(made.outputs[0])}};
  };
  CHECK_THROWS_AS(execution.gradients(shapes, model.parameters, model.batch), ShapeError);
  const ModelFunction numbers = [&](Tape& tape, std::span<const Var> p,
                                    std::span<const Var> b) -> LossAndOutputs {
    const LossAndOutputs made = model.record(tape, p, b);
    if (b[0].shape()[0] == 2) return {made.loss, {}};
    return made;
  };
  CHECK_THROWS_WITH(execution.gradients(numbers, model.parameters, model.batch),
                    Contains("11 and 3 outputs"));
  CHECK(same_bits(model.mean_of_hidden, Tensor::ones({16})));
}

TEST_CASE("pipelines: values leave outputs out and update nothing") {
  const ModelWithOutputs model;
  Execution execution(pipeline_of(2, 1));
  CHECK(execution.value(model.function(), model.parameters, model.batch).shape() == Shape{});
  CHECK(same_bits(model.mean_of_hidden, Tensor::ones({16})));
}

}  // namespace palimpsest::pipeline_outputs_test
