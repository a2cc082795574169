#include "tests/memory/kinds.h"

#include <utility>

namespace palimpsest {
namespace {

LossAndOutputs record_model(Tape& tape, std::span<const Var> parameters,
                            std::span<const Var> batch) {
  const Var x = batch[0];
  const std::int64_t width = x.shape()[1];
  Var y = x;
  for (std::size_t layer = 0; layer < parameters.size(); ++layer) {
    const Tape::Scope scope = tape.scope(layer % 2 == 0 ? "even" : "odd");
    y = tanh(matmul(y, parameters[layer]));
    if (layer % 4 != 3) continue;
    y = softmax(y) * 3.0 + y;
    const std::vector<Var> halves = split(y, {width / 2 - 1, width - width / 2 + 1}, 1);
    y = concat({tanh(halves[1]), halves[0]}, 1);
  }
  return mean(square(y - x));
}

/// The model with a loss that divides by a sum of weights, which take as much as values of a layer.
LossAndOutputs record_counted_model(Tape& tape, std::span<const Var> parameters,
                                    std::span<const Var> batch) {
  const Var weights = cumsum(exp(batch[0]), 0);
  const Var total = record_model(tape, parameters, batch).loss * sum(batch[0] * 0.0 + 1.0);
  return weighted_mean(total, sum(weights));
}

/// The model, after it has looked at a value that takes as much as six of its layers.
LossAndOutputs record_looking_model(Tape& tape, std::span<const Var> parameters,
                                    std::span<const Var> batch) {
  const Shape rows = batch[0].shape();
  cumsum(broadcast_to(batch[0], {6, rows[0], rows[1]}), 0).value();
  return record_model(tape, parameters, batch);
}

LossAndOutputs record_leaves_and_model(Tape& tape, const ModelTensors& tensors) {
  std::vector<Var> parameters;
  for (const Tensor& tensor : tensors.parameters) parameters.push_back(tape.parameter(tensor));
  std::vector<Var> batch;
  for (const Tensor& tensor : tensors.batch) batch.push_back(tape.constant(tensor));
  return record_model(tape, parameters, batch);
}

/// Records each step anew on one tape.
class OnTape : public Trainer {
 public:
  OnTape(const ModelTensors& tensors, std::shared_ptr<EngineEvaluator> evaluator,
         RunOptions options)
      : tensors_(tensors), tape_(std::move(evaluator)), options_(std::move(options)) {}

  Report step() override {
    tape_.clear();
    return backward(record_leaves_and_model(tape_, tensors_), options_).report();
  }

 private:
  const ModelTensors& tensors_;
  Tape tape_;
  RunOptions options_;
};

class ByProgram : public Trainer {
 public:
  ByProgram(const ModelTensors& tensors, const RunOptions& options)
      : runner_(Program::gradients(
            [&](Tape& tape) { return record_leaves_and_model(tape, tensors); }, options)) {}

  Report step() override {
    runner_.run();
    return runner_.gradients().report();
  }

 private:
  Runner runner_;
};

class ByExecution : public Trainer {
 public:
  ByExecution(const ModelTensors& tensors, ExecutionStrategy strategy, ModelFunction model)
      : tensors_(tensors), execution_(std::move(strategy)), model_(std::move(model)) {}

  Report step() override {
    return execution_.gradients(model_, tensors_.parameters, tensors_.batch).report();
  }

 private:
  const ModelTensors& tensors_;
  Execution execution_;
  ModelFunction model_;
};

RunOptions options_of(Bytes budget, AllocationPolicy memory, NativeCode native) {
  return {.memory_budget = budget, .threads = 2, .memory = memory, .native = native};
}

Kind lazy_kind(std::string name, AllocationPolicy memory, NativeCode native = NativeCode::off) {
  return {std::move(name), 1, [=](const ModelTensors& tensors, Bytes budget) {
            return std::make_unique<OnTape>(tensors, lazy(), options_of(budget, memory, native));
          }};
}

Kind hybrid_kind(std::string name, AllocationPolicy memory) {
  return {std::move(name), 1, [=](const ModelTensors& tensors, Bytes budget) {
            const RunOptions options = options_of(budget, memory, NativeCode::off);
            return std::make_unique<OnTape>(tensors, hybrid(options), options);
          }};
}

Kind eager_kind() {
  return {"eager", 1, [](const ModelTensors& tensors, Bytes budget) {
            return std::make_unique<OnTape>(
                tensors, eager({.memory_budget = budget, .threads = 2}),
                options_of(budget, AllocationPolicy::minimal_peak, NativeCode::off));
          }};
}

Kind program_kind(std::string name, NativeCode native) {
  return {std::move(name), 1, [=](const ModelTensors& tensors, Bytes budget) {
            return std::make_unique<ByProgram>(
                tensors, options_of(budget, AllocationPolicy::minimal_peak, native));
          }};
}

Kind execution_kind(std::string name, int parts, ExecutionStrategy strategy,
                    ModelFunction model = record_model) {
  return {std::move(name), parts, [=](const ModelTensors& tensors, Bytes budget) {
            ExecutionStrategy within = strategy;
            within.run = options_of(budget, within.run.memory, NativeCode::off);
            return std::make_unique<ByExecution>(tensors, within, model);
          }};
}

/// A model that looks at values, with parts that differ by one example.
Kind looking_kind(std::string name, const ExecutionStrategy& strategy) {
  Kind kind = execution_kind(std::move(name), 2, strategy, record_looking_model);
  kind.is_uneven = true;
  return kind;
}

}  // namespace

ModelTensors tensors_of(const ModelSize& size, const Kind& kind) {
  ModelTensors tensors;
  for (int layer = 0; layer < size.layers; ++layer) {
    const auto seed = static_cast<std::uint64_t>(layer);
    tensors.parameters.push_back(Tensor::normal({size.width, size.width}, seed, 0, 0.3));
  }
  const std::int64_t rows = size.rows * kind.parts - (kind.is_uneven ? 1 : 0);
  tensors.batch.push_back(Tensor::uniform({rows, size.width}, 99, -1, 1));
  return tensors;
}

std::vector<Kind> kinds() {
  using enum AllocationPolicy;
  constexpr ExecutionMode eager_mode = ExecutionMode::eager;
  constexpr ExecutionMode hybrid_mode = ExecutionMode::hybrid;
  constexpr ParallelMode replicas = ParallelMode::data_parallel;
  return {
      lazy_kind("lazy", minimal_peak),
      lazy_kind("lazy, pooled", pooled),
      lazy_kind("lazy, standard", standard),
      lazy_kind("lazy, cached", cached),
      lazy_kind("lazy, native", minimal_peak, NativeCode::at_once),
      eager_kind(),
      hybrid_kind("hybrid", minimal_peak),
      hybrid_kind("hybrid, pooled", pooled),
      program_kind("Program", NativeCode::off),
      program_kind("Program, native", NativeCode::at_once),
      execution_kind("Execution, eager", 1, {.mode = eager_mode}),
      execution_kind("Execution, hybrid", 1, {.mode = hybrid_mode}),
      execution_kind("accumulation", 2, {.accumulation = 2}),
      execution_kind("accumulation, eager", 2, {.mode = eager_mode, .accumulation = 2}),
      execution_kind("accumulation, hybrid", 2, {.mode = hybrid_mode, .accumulation = 2}),
      execution_kind("replicas", 2, {.parallelism = replicas, .workers = 2}),
      execution_kind("replicas, hybrid", 2,
                     {.mode = hybrid_mode, .parallelism = replicas, .workers = 2}),
      execution_kind("replicas, accumulation", 4,
                     {.accumulation = 2, .parallelism = replicas, .workers = 2}),
      execution_kind("pipeline", 2,
                     {.accumulation = 2, .parallelism = ParallelMode::pipeline, .stages = 2}),
      execution_kind("accumulation, counted", 2, {.accumulation = 2}, record_counted_model),
      execution_kind("eager, counted", 2, {.mode = eager_mode, .accumulation = 2},
                     record_counted_model),
      execution_kind("replicas, counted", 2, {.parallelism = replicas, .workers = 2},
                     record_counted_model),
      execution_kind("pipeline, counted", 2,
                     {.accumulation = 2, .parallelism = ParallelMode::pipeline, .stages = 2},
                     record_counted_model),
      looking_kind("accumulation, looking", {.accumulation = 2}),
      execution_kind("devices", 1,
                     {.parallelism = ParallelMode::model_parallel, .devices = {{}, {}}}),
      execution_kind(
          "devices, accumulation", 2,
          {.accumulation = 2, .parallelism = ParallelMode::model_parallel, .devices = {{}, {}}}),
  };
}

}  // namespace palimpsest
