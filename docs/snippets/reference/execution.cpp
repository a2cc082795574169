// Examples of docs/reference/execution.md.
#include <palimpsest/strategy/execution/choice/memory_forecast.h>

#include "docs/snippets/reference/example.h"

namespace reference {
namespace {

/// The mean squared error of a linear model.
Var error_of(Tape&, std::span<const Var> parameters, std::span<const Var> batch) {
  return mse(matmul(batch[0], parameters[0]), batch[1]);
}

const std::vector<Tensor> weights{Tensor::ones({2, 1})};
const std::vector<Tensor> batch{Tensor::ones({8, 2}), Tensor::zeros({8, 1})};

}  // namespace

EXAMPLE(Execution) {
  // Four micro-batches, each within 1 MiB.
  Execution execution({.accumulation = 4, .run = {.memory_budget = 1_MiB}});
  const Gradients gradients = execution.gradients(error_of, weights, batch);
  print(gradients.loss(), gradients.entries()[0].gradient);  // → 4 [[4], [4]]
  print(execution.value(error_of, weights, batch), execution.report().micro_batches);  // → 4 1
  print(execution.strategy().accumulation, execution.state().size());                  // → 4 2
}

EXAMPLE(ExecutionStrategy, ExecutionMode, GradientMode, ParallelMode, Device) {
  const ExecutionStrategy strategy{.gradient = GradientMode::checkpointed,
                                   .checkpoint_fraction = 0.5,
                                   .parallelism = ParallelMode::data_parallel,
                                   .workers = 2};
  print(strategy.summary());  // → lazy, checkpointed gradients in 50 % of the memory, 2 replicas
  print(strategy.replicas(), strategy.thread_count() > 0, strategy.run_options().fuse);
  // → 2 true true
}

EXAMPLE(to_json, strategy_from_json, read_strategy, write_strategy, require_valid) {
  const ExecutionStrategy strategy{.accumulation = 4};
  print(strategy_from_json(to_json(strategy)) == strategy);  // → true
  write_strategy(strategy, "strategy.json");
  print(read_strategy("strategy.json").accumulation);  // → 4
}

EXAMPLE(named_strategies, strategy_named, NamedStrategy) {
  for (const NamedStrategy& named : named_strategies()) print(named.name);
  // → default
  // → training
  // → inference
  // → memory-efficient
  // → high-throughput
  // → mixed-precision
  // → changing-sizes
  // → profile
  // → debug
  print(strategy_named("memory-efficient").summary());
  // → lazy, checkpointed gradients in 33 % of the memory
}

EXAMPLE(recommend, Recommendation, RecommendOptions, Considered) {
  const Recommendation best =
      recommend({error_of, weights, batch}, {.memory = 1_GiB, .threads = 1});
  print(best.estimate.seconds > 0, best.considered.size() > 1);  // → true true
}

EXAMPLE(forecast_memory, MemoryForecast) {
  const auto optimizer = adam();
  const MemoryForecast forecast = forecast_memory({}, {error_of, weights, batch}, optimizer.get());
  print(forecast.parameters, forecast.optimizer_state, forecast.total() > forecast.step);
  // → 8 16 true
}

EXAMPLE(precise, Precision, PrecisionKind) {
  Tape tape(precise({PrecisionKind::mixed, DType::bf16}));
  const Var w = tape.parameter(Tensor::ones({4, 4}));
  const Var y = matmul(w, w);                     // computed in bf16, accumulated in f32
  print(y.dtype(), backward(sum(y))[w].dtype());  // → f32 f32
}

EXAMPLE(name_of, precision_kind_named) {
  print(name_of(PrecisionKind::mixed), name_of(precision_kind_named("half")));  // → mixed half
}

EXAMPLE(LayerCheckpointer, LayerGradients) {
  const std::vector<std::vector<Tensor>> layers(4, {Tensor::ones({2, 2})});
  const LayerModel model{
      .layer = {.parameters = layers, .forward = [](const Var& x, std::span<const Var> w, int) {
                  return tanh(matmul(x, w[0]));
                }}};
  LayerCheckpointer checkpointer(model, {.mode = LayerCheckpointing::Mode::every, .interval = 2});
  print(checkpointer.layers(), checkpointer.forward(Tensor::ones({1, 2})).shape());  // → 4 (1, 2)
  print(checkpointer.is_kept(1), checkpointer.activation(1).shape());  // → false (1, 2)
  const LayerGradients gradients = checkpointer.backward([](const Var& y) { return sum(y); });
  print(gradients.parameters.entries().size(), gradients.input.shape());  // → 4 (1, 2)
}

EXAMPLE(LayerCheckpointer::save, LayerCheckpointer::parameter, LayerCheckpointer::forecast,
        LayerCheckpointer::use, LayerCheckpointer::release, LayerCheckpointer::checkpointing,
        LayerCheckpointer::meter) {
  const std::vector<std::vector<Tensor>> layers(4, {Tensor::ones({2, 2})});
  const LayerModel model{
      .layer = {.parameters = layers, .forward = [](const Var& x, std::span<const Var> w, int) {
                  return tanh(matmul(x, w[0]));
                }}};
  LayerCheckpointer checkpointer(model, {.mode = LayerCheckpointing::Mode::every, .interval = 2});
  print(checkpointer.forecast({{1, 2}, DType::f32}).use.peak > 0);  // → true
  checkpointer.forward(Tensor::ones({1, 2}));
  checkpointer.save(2);  // keep this layer's input from now on
  print(checkpointer.is_kept(2), checkpointer.parameter(0, 0).shape());  // → true (2, 2)
  print(checkpointer.use().peak > 0);                                    // → true
  checkpointer.release();
}

EXAMPLE(Execution::state, Execution::check_state, Execution::load_state) {
  Execution execution, other;
  execution.gradients(error_of, weights, batch);
  other.load_state(execution.state());  // random operations continue
  print(other.state().size());          // → 2
}

EXAMPLE(LayerCheckpointing, LayerCheckpointing::summary, to_json, layer_checkpointing_from_json,
        write_layer_checkpointing, read_layer_checkpointing) {
  const LayerCheckpointing every_third{.mode = LayerCheckpointing::Mode::every, .interval = 3};
  print(every_third.summary());                                               // → every 3 layers
  print(layer_checkpointing_from_json(to_json(every_third)) == every_third);  // → true
  write_layer_checkpointing(every_third, "layers.json");
  print(read_layer_checkpointing("layers.json").interval.value());  // → 3
}

EXAMPLE(estimate, Estimate, Workload) {
  // Only the shapes count.
  const Workload workload{error_of, weights, {Tensor({4096, 2}), Tensor({4096, 1})}};
  const Estimate whole = estimate({}, workload), cut = estimate({.accumulation = 4}, workload);
  print(whole.micro_batches, cut.micro_batches, whole.seconds > 0, whole.is_planned);
  // → 1 4 true true
  print(cut.peak < whole.peak);  // → true
}

}  // namespace reference
