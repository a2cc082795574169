#include "strategy/mpi/distributed_execution.h"

#include <numeric>

#include "tests/strategy/mpi/model.h"
#include "tests/strategy/mpi/ranks.h"

namespace palimpsest::distributed_execution_test {
namespace {

LossReduction reduction_of(const Model& model) {
  return model.is_sum ? LossReduction::sum : LossReduction::mean;
}

/// The last of three steps on all ranks.
Found distributed(const Model& model, const ExecutionStrategy& strategy,
                  DistributedOptions options) {
  options.reduction = reduction_of(model);
  DistributedExecution execution(world(), strategy, options);
  Found found;
  for (int step = 0; step < 3; ++step) {
    found = Found(execution.gradients(model.loss(), model.parameters, model.batch));
  }
  return found;
}

/// Runs the strategy in one process, with a shard for each rank.
Found in_one_process(const Model& model, ExecutionStrategy strategy) {
  strategy.parallelism = ParallelMode::data_parallel;
  strategy.workers = world().size();
  Execution execution(strategy, reduction_of(model));
  Found found;
  for (int step = 0; step < 3; ++step) {
    found = Found(execution.gradients(model.loss(), model.parameters, model.batch));
  }
  return found;
}

/// The model after `steps` steps in one process, with a shard for each rank.
Model trained_alone(Model model, Optimizer& optimizer, int steps) {
  Execution execution({.parallelism = ParallelMode::data_parallel, .workers = world().size()});
  for (int step = 0; step < steps; ++step) {
    optimizer.step(execution.gradients(model.loss(), model.parameters, model.batch));
  }
  return model;
}

TEST_CASE("in the order of ranks, gradients have the bits of one process with as many shards") {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (const std::int64_t examples : {16, 13}) {
      for (const bool is_sum : {false, true}) {
        for (const double dropped : {0.0, 0.3}) {
          Model model(dtype, examples, 4);
          model.is_sum = is_sum;
          model.dropped = dropped;
          model.loops = dropped == 0;
          const Found expected = in_one_process(model, {});
          for (const Bytes bucket_bytes : {Bytes{64}, Bytes{1000}, 1_MiB}) {
            CAPTURE(name_of(dtype), examples, is_sum, dropped, bucket_bytes);
            const Found found =
                distributed(model, {}, {.deterministic = true, .bucket_bytes = bucket_bytes});
            CHECK(same(found, expected));
          }
        }
      }
    }
  }
}

TEST_CASE("no mode, memory, budget or number of threads changes a bit") {
  const Model model(DType::f32, 14, 5);
  const Found expected = in_one_process(model, {});
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    for (const AllocationPolicy memory : {AllocationPolicy::minimal_peak, AllocationPolicy::pooled,
                                          AllocationPolicy::standard, AllocationPolicy::cached}) {
      if (memory == AllocationPolicy::cached && mode != ExecutionMode::lazy) continue;
      for (const ParallelMode parallelism : {ParallelMode::none, ParallelMode::automatic}) {
        ExecutionStrategy strategy{
            .mode = mode, .parallelism = parallelism, .run = {.memory = memory}};
        if (mode == ExecutionMode::hybrid) strategy.stage = {.nodes = 3};
        CAPTURE(strategy.summary());
        CHECK(same(distributed(model, strategy, {.deterministic = true, .bucket_bytes = 500}),
                   expected));
      }
    }
  }
}

TEST_CASE("another precision has the bits that it has in one process, scaled losses too") {
  const Model model(DType::f32, 14, 3);
  for (const DType half : {DType::bf16, DType::f16}) {
    const ExecutionStrategy strategy{.precision = Precision{PrecisionKind::mixed, half}};
    const Found expected = in_one_process(model, strategy);
    const Found found = distributed(model, strategy, {.deterministic = true});
    CHECK(same(found, expected));
    CHECK(found.report.loss_scale == expected.report.loss_scale);
    CHECK(found.report.overflowed == expected.report.overflowed);
  }
}

TEST_CASE("in any order, gradients are those of the whole batch to rounding") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (const std::int64_t examples : {16, 13}) {
      for (const int accumulation : {1, 3}) {
        for (const bool is_sum : {false, true}) {
          for (const bool deterministic : {false, true}) {
            Model model(dtype, examples, 3);
            model.is_sum = is_sum;
            Execution whole({}, reduction_of(model));
            const Found expected(whole.gradients(model.loss(), model.parameters, model.batch));
            CAPTURE(name_of(dtype), examples, accumulation, is_sum, deterministic);
            const Found found = distributed(model, {.accumulation = accumulation},
                                            {.deterministic = deterministic, .bucket_bytes = 700});
            const double tolerance = dtype == DType::f64 ? 1e-13 : 2e-5;
            CHECK(distance(found, expected) < tolerance);
            CHECK(std::abs(found.loss - expected.loss) < tolerance * (1 + expected.loss));
          }
        }
      }
    }
  }
}

TEST_CASE("shards of any size have the bits of an accumulator's micro-batches") {
  const Model model(DType::f32, 40, 3);
  const auto shard_of = [&](int rank) {
    const std::int64_t first = rank * (rank + 3) / 2;  // shards of 2, 3, 4 … examples
    std::vector<Tensor> shard;
    for (const Tensor& whole : model.batch) {
      const std::span<float> from = whole.data<float>();
      shard.push_back(Tensor::from(
          std::span<const float>(from.subspan(static_cast<std::size_t>(first * Model::width),
                                              static_cast<std::size_t>((rank + 2) * Model::width))),
          {rank + 2, Model::width}));
    }
    return shard;
  };
  GradientAccumulator accumulator(
      {.steps = world().size(), .normalization = GradientNormalization::weighted});
  Tape tape;
  for (int rank = 0; rank < world().size(); ++rank) {
    tape.clear();
    std::vector<Var> parameters;
    for (const Tensor& tensor : model.parameters) parameters.push_back(tape.parameter(tensor));
    std::vector<Var> shard;
    for (const Tensor& tensor : shard_of(rank)) shard.push_back(tape.constant(tensor));
    accumulator.step(backward(model.record(parameters, shard)), rank + 2);
  }
  const Found expected(accumulator.gradients());
  DistributedExecution execution(world(), {}, {.deterministic = true, .bucket_bytes = 300});
  const Gradients found =
      execution.gradients_of_shard(model.loss(), model.parameters, shard_of(world().rank()));
  CHECK(same(Found(found), expected));
  CHECK(execution.reports()[0].examples == 2);
}

TEST_CASE("micro-batches of a world of one have the bits of an execution") {
  if (world().size() > 1) return;
  const Model model(DType::bf16, 13, 3);
  const ExecutionStrategy strategy{.accumulation = 4};
  Execution execution(strategy);
  Found expected;
  for (int step = 0; step < 3; ++step) {
    expected = Found(execution.gradients(model.loss(), model.parameters, model.batch));
  }
  CHECK(same(distributed(model, strategy, {.deterministic = true}), expected));
  CHECK(same(distributed(model, strategy, {}), expected));
}

TEST_CASE("reductions begin while other gradients are still to be computed") {
  if (world().size() == 1) return;
  for (const std::int64_t examples : {16, 64}) {
    const Model model(DType::f32, examples, 10);
    for (const bool deterministic : {false, true}) {
      CAPTURE(examples, deterministic);
      DistributedExecution execution(world(), {.parallelism = ParallelMode::none},
                                     {.deterministic = deterministic, .bucket_bytes = 640});
      for (int step = 0; step < 3; ++step) {
        execution.gradients(model.loss(), model.parameters, model.batch);
        REQUIRE(std::ssize(execution.reports()) == world().size());
        for (const RankReport& report : execution.reports()) {
          CHECK(report.buckets == 10);
          CHECK(report.bytes == 10 * 640);
          CHECK(report.started_early >= 1);
          CHECK(report.started_early < report.buckets);
          CHECK(report.overlapped_seconds > 0);
          CHECK(report.examples == examples / world().size());
          // Layer by layer, each bucket is sent at once; parts are received one at a time.
          if (!deterministic) CHECK(report.started_early == report.buckets - 1);
        }
      }
    }
  }
}

TEST_CASE("parameters recorded in another order than backward comes to them overlap too") {
  if (world().size() == 1) return;
  Model model(DType::f32, 16, 10);
  const auto backwards = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
    std::vector<Var> reversed(p.begin(), p.end());
    for (std::size_t k = 0; k < 5; ++k) {
      std::swap(reversed[2 * k], reversed[18 - 2 * k]);
      std::swap(reversed[2 * k + 1], reversed[19 - 2 * k]);
    }
    return model.record(reversed, b);
  };
  DistributedExecution execution(world(), {.parallelism = ParallelMode::none},
                                 {.bucket_bytes = 640});
  for (int step = 0; step < 3; ++step) {
    execution.gradients(backwards, model.parameters, model.batch);
    const RankReport& own = execution.reports()[static_cast<std::size_t>(world().rank())];
    CHECK(own.started_early == (step == 0 ? 0 : own.buckets - 1));
  }
}

TEST_CASE("sums are within the budget of a rank") {
  const Model model(DType::f32, 64, 6);
  for (const bool deterministic : {false, true}) {
    for (const int accumulation : {1, 2}) {
      ExecutionStrategy strategy{.accumulation = accumulation};
      const DistributedOptions options{.deterministic = deterministic, .bucket_bytes = 640};
      const Found unlimited_found = distributed(model, strategy, options);
      const Bytes everything = unlimited_found.report.measured_peak;
      CHECK(everything > (world().size() * accumulation > 1 ? 6 * 640 : 0));
      strategy.run.memory_budget = 1;
      DistributedExecution small(world(), strategy, options);
      Bytes least = 0;
      try {
        small.gradients(model.loss(), model.parameters, model.batch);
      } catch (const BudgetError& error) {
        CHECK(error.budget() == 1);
        least = error.smallest_feasible();
      }
      CHECK(least > 0);
      CHECK(least < everything);
      for (const Bytes budget : {least, (least + everything) / 2, everything}) {
        CAPTURE(deterministic, accumulation, budget);
        strategy.run.memory_budget = budget;
        const Found found = distributed(model, strategy, options);
        if (deterministic) CHECK(same(found, unlimited_found));
        CHECK(found.report.budget == budget);
        CHECK(found.report.measured_peak <= found.report.predicted_peak);
        CHECK(found.report.predicted_peak <= budget);
      }
    }
  }
}

TEST_CASE("gradients that somebody holds stay as they are") {
  Model model(DType::f32, 16, 3);
  DistributedExecution execution(world(), {}, {.deterministic = true});
  const Gradients first = execution.gradients(model.loss(), model.parameters, model.batch);
  const Found copy(first);
  model.batch[1] = Tensor::uniform({16, Model::width}, 77);
  for (int step = 0; step < 3; ++step) {
    const Found later(execution.gradients(model.loss(), model.parameters, model.batch));
    CHECK(!same(later, copy));
    CHECK(same(Found(first), copy));
  }
}

TEST_CASE("the first step gives all ranks the parameters of rank 0") {
  Model model(DType::f32, 16, 3);
  if (world().rank() > 0) {
    for (Tensor& parameter : model.parameters) {
      parameter = Tensor::uniform(parameter.shape(), 5 + static_cast<unsigned>(world().rank()));
    }
  }
  DistributedExecution execution(world(), {}, {.deterministic = true, .verify_every = 1});
  const auto optimizer = adam();
  for (int step = 0; step < 4; ++step) {
    optimizer->step(execution.gradients(model.loss(), model.parameters, model.batch));
    if (step > 0) execution.verify(model.parameters);
  }
  const Model alone = trained_alone(Model(DType::f32, 16, 3), *adam(), 4);
  for (std::size_t i = 0; i < alone.parameters.size(); ++i) {
    CHECK(same_bits(model.parameters[i], alone.parameters[i]));
  }
}

TEST_CASE("training on ranks has the weights of one process") {
  Model model(DType::f32, 14, 3);
  DistributedExecution execution(world(), {}, {.deterministic = true, .bucket_bytes = 640});
  const auto optimizer = adamw();
  for (int step = 0; step < 5; ++step) {
    optimizer->step(execution.gradients(model.loss(), model.parameters, model.batch));
  }
  const Model alone = trained_alone(Model(DType::f32, 14, 3), *adamw(), 5);
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    CHECK(same_bits(model.parameters[i], alone.parameters[i]));
  }
}

TEST_CASE("gradients that a model asks for while it records are its own") {
  const Model model(DType::f32, 16, 3);
  // Scales the loss by a number computed from gradients of a part of it.
  const ModelFunction loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    const Gradients inner = backward(sum(p[0] * p[0]) + mean(b[0] * b[0]));
    const Tensor slope = inner.entries()[0].gradient;
    return model.record(p, b) * tape.constant(Tensor::scalar(1 + slope.at(0)));
  };
  for (const ExecutionMode mode : {ExecutionMode::lazy, ExecutionMode::eager}) {
    for (const int accumulation : {1, 2}) {
      CAPTURE(name_of(mode), accumulation);
      const ExecutionStrategy strategy{.mode = mode, .accumulation = accumulation};
      Execution whole({.accumulation = accumulation,
                       .parallelism = ParallelMode::data_parallel,
                       .workers = world().size()});
      DistributedExecution execution(world(), strategy, {.deterministic = true});
      for (int step = 0; step < 3; ++step) {
        const Found expected(whole.gradients(loss, model.parameters, model.batch));
        const Found found(execution.gradients(loss, model.parameters, model.batch));
        CHECK(distance(found, expected) < 1e-6);
        if (accumulation == 1) CHECK(same(found, expected));
      }
    }
  }
}

TEST_CASE("parameters without elements, and those that the loss does not read, have gradients") {
  for (const bool has_layers : {true, false}) {
    Model model(DType::f32, 16, 3);
    std::vector<Tensor> parameters;
    if (has_layers) parameters = model.parameters;
    parameters.push_back(Tensor::zeros({0, 3}));
    if (has_layers) parameters.push_back(Tensor::ones({5, 40}));  // larger than a bucket
    const ModelFunction loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
      std::vector<Var> layers;
      for (const Tensor& tensor : model.parameters) layers.push_back(tape.constant(tensor));
      const Var of_layers = model.record(has_layers ? p.first(6) : std::span<const Var>(layers), b);
      return of_layers + sum(p[has_layers ? 6 : 0]);
    };
    for (const bool deterministic : {true, false}) {
      CAPTURE(has_layers, deterministic);
      Execution whole({.parallelism = ParallelMode::data_parallel, .workers = world().size()});
      DistributedExecution execution(
          world(), {}, {.deterministic = deterministic, .bucket_bytes = 256, .verify_every = 1});
      for (int step = 0; step < 3; ++step) {
        const Found expected(whole.gradients(loss, parameters, model.batch));
        const Found found(execution.gradients(loss, parameters, model.batch));
        REQUIRE(found.gradients.size() == parameters.size());
        if (deterministic) CHECK(same(found, expected));
        CHECK(distance(found, expected) < 1e-6);
        if (has_layers) CHECK(same_bits(found.gradients[7], Tensor::zeros({5, 40})));
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::distributed_execution_test
