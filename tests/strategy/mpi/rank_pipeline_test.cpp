#include <algorithm>
#include <atomic>

#include "tests/cases.h"
#include "tests/strategy/execution/random_model.h"
#include "tests/strategy/mpi/rank_pipeline.h"
#include "tests/strategy/trace_events.h"
#include "tests/temporary_file.h"

namespace palimpsest::rank_pipeline_test {
namespace {

using Catch::Matchers::Contains;

/// Runs the case in one process, as a pipeline.
Found in_one_process(const Case& of, ExecutionStrategy strategy) {
  strategy.stages = world().size();
  strategy.run.memory_budget = unlimited;
  Execution execution(strategy, reduction_of(of.model));
  Found found;
  for (int step = 0; step < 3; ++step) {
    found = Found(execution.gradients(of.loss, of.model.parameters, of.model.batch));
  }
  return found;
}

void check_same(const Case& of, const ExecutionStrategy& strategy) {
  CAPTURE(of.name, strategy.summary(), world().rank());
  const Found found = on_ranks(of, strategy);
  CHECK(same(found, in_one_process(of, strategy)));
  CHECK(std::isfinite(found.report.compute_overhead));
  CHECK(found.report.measured_peak <= found.report.predicted_peak);
  CHECK(found.report.predicted_peak <= strategy.run.memory_budget);
}

/// Layers with dropout, each followed by a layer that is the same everywhere. Every layer reads the
/// input, and the end reads the first parameter again.
Var tangled(std::span<const Var> p, std::span<const Var> b) {
  Var y = b[0];
  for (std::size_t k = 0; k + 3 < p.size(); k += 2) {
    y = dropout(tanh(matmul(y, p[k]) + p[k + 1]), 0.25);
    y = sin(matmul(y, p.back() * matmul(p[p.size() - 2], p[p.size() - 2])) + b[0]);
  }
  const Var error = matmul(y, p[0]) - b[1];
  return mean(error * error);
}

std::vector<Case> networks() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    cases.push_back({"layers of " + std::string(name_of(dtype)), Model(dtype, 12, 6), {}});
  }
  cases.push_back({"layers with dropout"});
  cases.back().model.dropped = 0.3;
  cases.push_back({"layers of uneven micro-batches", Model(DType::f32, 13, 5), {}});
  cases.push_back({"layers of a sum"});
  cases.back().model.is_sum = true;
  cases.push_back({"layers and a loop"});
  cases.back().model.loops = true;
  for (Case& each : cases) {
    each.loss = [model = each.model](Tape&, std::span<const Var> p, std::span<const Var> b) {
      return model.record(p, b);
    };
  }
  cases.push_back({"tangled"});
  cases.back().loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return tangled(p, b);
  };
  cases.push_back({"of little use", Model(DType::f32, 12, 6),
                   [](Tape&, std::span<const Var> p, std::span<const Var> b) {
                     Var y = matmul(b[0], p[0]);
                     for (int k = 0; k < 6; ++k) y = sin(y);
                     return sum(y) + sum(p[3]) + sum(exp(sin(b[1])));
                   }});
  cases.push_back(
      {"of fewer operations than stages", Model(DType::f32, 12, 1),
       [](Tape&, std::span<const Var> p, std::span<const Var> b) { return sum(p[1] * b[0]); }});
  return cases;
}

TEST_CASE("a pipeline over ranks has the bits of one in a process") {
  for (const Case& each : networks()) {
    for (const int micro_batches : {1, 2, 5, 8}) check_same(each, pipeline_of(micro_batches));
  }
}

TEST_CASE("messages that MPI does not buffer find their way through stages that are ranks") {
  Case layers{"large layers", Model(DType::f32, 4096, 8), {}};
  layers.loss = layers.model.loss();
  for (const int micro_batches : {4, 8}) check_same(layers, pipeline_of(micro_batches));
  ExecutionStrategy least = pipeline_of(8);
  least.run.memory_budget = 1;
  try {
    on_ranks(layers, least);
  } catch (const BudgetError& error) {
    least.run.memory_budget = error.smallest_feasible();
  }
  check_same(layers, least);  // no room to receive messages ahead
}

TEST_CASE("a pipeline over ranks has them in every precision, scaled losses too") {
  Case layers{"layers"};
  for (const DType half : {DType::bf16, DType::f16}) {
    ExecutionStrategy strategy = pipeline_of(3);
    strategy.precision = Precision{PrecisionKind::mixed, half};
    check_same(layers, strategy);
    const Found found = on_ranks(layers, strategy);
    const Found expected = in_one_process(layers, strategy);
    CHECK(found.report.loss_scale == expected.report.loss_scale);
    CHECK(found.report.precision == expected.report.precision);
    CHECK_FALSE(found.report.overflowed);
  }
  // So large that every step overflows.
  for (Tensor& tensor : layers.model.batch) {
    for (float& element : tensor.data<float>()) element *= 3000;
  }
  layers.loss = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return mean(matmul(layers.model.record(p, b) * b[0], p[0]) * 1000.0);
  };
  ExecutionStrategy strategy = pipeline_of(3);
  strategy.precision = Precision{PrecisionKind::mixed, DType::f16};
  const Found found = on_ranks(layers, strategy);
  CHECK(found.report.overflowed);
  CHECK(found.report.loss_scale == in_one_process(layers, strategy).report.loss_scale);
}

TEST_CASE("a pipeline over ranks has them with any way of checkpointing and any threads") {
  for (const Case& each : networks()) {
    if (each.name != "tangled" && each.name != "layers of f32") continue;
    std::vector<ExecutionStrategy> strategies(7, pipeline_of(5));
    strategies[0].gradient = GradientMode::full;
    for (std::size_t i = 1; i < 4; ++i) strategies[i].gradient = GradientMode::checkpointed;
    strategies[1].checkpoint_interval = 2;
    strategies[2].checkpoint_fraction = 0.3;
    strategies[3].checkpoint_planner = "square_root";
    strategies[4].run.fuse = false;
    strategies[5].run.threads = 3;
    strategies[6].run.anomaly = true;
    for (const ExecutionStrategy& strategy : strategies) check_same(each, strategy);
  }
}

TEST_CASE("models that differ from micro-batch to micro-batch go through stages that are ranks") {
  Case longer{"longer for more examples", Model(DType::f32, 14, 6),
              [](Tape&, std::span<const Var> p, std::span<const Var> b) {
                Var y = b[0];
                for (std::size_t k = 0; k < 12; k += 2) {
                  for (std::int64_t i = 0; i < b[0].shape()[0]; ++i) y = sin(y + p[k + 1] * y);
                  y = tanh(matmul(y, p[k]));
                }
                const Var error = y - b[1];
                return mean(error * error);
              }};
  for (const int micro_batches : {4, 8}) check_same(longer, pipeline_of(micro_batches));
  // Every other micro-batch is a different model, with other cuts and other stages that compute the
  // gradients.
  int recorded = 0;
  longer.loss = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
    std::vector<Var> order(p.begin(), p.end());
    if (recorded++ % 2 == 1) std::reverse(order.begin(), order.end());
    Var y = b[0];
    for (int k = 0; k < 12; ++k) {
      const Var& x = order[static_cast<std::size_t>(k)];
      y = x.shape().rank() == 2 ? tanh(matmul(y, x)) : sin(y + x);
    }
    const Var error = y - b[1];
    return mean(error * error);
  };
  for (const int micro_batches : {2, 6}) check_same(longer, pipeline_of(micro_batches));
}

TEST_CASE("random graphs go through stages that are ranks, each of which checkpoints as it likes") {
  const auto most = static_cast<unsigned>(cases(60));
  for (unsigned seed = 0; seed < most; ++seed) {
    const SmallModel random = random_model(seed, 8 + static_cast<int>(seed) % 12);
    Case any{"random " + std::to_string(seed), Model(DType::f64, 5, 0), random.loss};
    any.model.parameters = random.parameters;
    any.model.batch = random.batch;
    any.model.is_sum = true;
    ExecutionStrategy strategy = pipeline_of(1 + static_cast<int>(seed) % 5);
    if (((seed >> world().rank()) & 1) != 0) {
      strategy.gradient = GradientMode::checkpointed;
      strategy.checkpoint_fraction = 0.5;
    }
    check_same(any, strategy);
  }
}

TEST_CASE("every rank keeps to its own budget, and all are told of one that is too small") {
  const RankWorld& ranks = world();
  Case layers{"layers", Model(DType::f32, 64, 8)};
  layers.loss = layers.model.loss();
  const ExecutionStrategy strategy = pipeline_of(8);
  const Found whole = on_ranks(layers, strategy);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const bool is_small = ranks.rank() == rank;
    std::atomic<int> computed = 0;
    const CustomOperation counted({.name = "counted",
                                   .forward =
                                       [&](const CustomCall& call) {
                                         ++computed;
                                         std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(),
                                                     call.outputs[0].raw());
                                       },
                                   .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }});
    const auto attempt = [&](Bytes budget) {
      ExecutionStrategy within = strategy;
      if (is_small) within.run.memory_budget = budget;
      DistributedExecution execution(world(), within);
      return execution.gradients(
          [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
            const std::vector<Var> batch{counted({b[0]}), counted({b[1]})};
            return layers.model.record(p, batch);
          },
          layers.model.parameters, layers.model.batch);
    };
    const auto refused = [&](Bytes budget) {
      Bytes smallest = 0;
      try {
        attempt(budget);
      } catch (const BudgetError& error) {
        CHECK(is_small);
        CHECK(error.budget() == budget);
        CHECK_THAT(error.what(), Contains("[pipeline] stage " + std::to_string(rank) + " of " +
                                          std::to_string(ranks.size())));
        smallest = error.smallest_feasible();
      } catch (const RankError& error) {
        CHECK_FALSE(is_small);
        CHECK(error.rank() == rank);
        CHECK_THAT(error.what(),
                   Contains("rank " + std::to_string(rank) + " failed") && Contains("a budget of"));
      }
      CHECK(computed == 0);
      return smallest;
    };
    const Bytes smallest = refused(1);
    if (is_small) {
      CHECK(smallest > 0);
      CHECK(smallest < whole.report.predicted_peak);
    }
    refused(smallest - 1);
    bool ran_again = false;
    const int steps = 1 + cases(5);
    for (int step = 0; step <= steps; ++step) {
      const Bytes most = whole.report.predicted_peak;
      const Bytes budget = smallest + (most - smallest) * step / steps;
      ExecutionStrategy within = strategy;
      if (is_small) within.run.memory_budget = budget;
      CAPTURE(rank, ranks.rank(), smallest, most, budget);
      const Found found = on_ranks(layers, within);
      CHECK(same(found, whole));
      CHECK(found.report.measured_peak <= found.report.predicted_peak);
      CHECK(found.report.predicted_peak <= within.run.memory_budget);
      const auto of_rank = static_cast<std::size_t>(rank);
      CHECK(found.report.stages[of_rank].predicted_peak <= found.report.stages[of_rank].budget);
      for (std::size_t s = 0; s < found.report.stages.size(); ++s) {
        if (s != of_rank) CHECK_FALSE(found.report.stages[s].computes_again);
      }
      ran_again = ran_again || found.report.stages[of_rank].computes_again;
      if (step == steps) CHECK_FALSE(found.report.stages[of_rank].computes_again);
    }
    CHECK(ran_again);
  }
}

TEST_CASE("a pipeline over ranks trains to the weights of one process") {
  Model model(DType::f32, 14, 6);
  Model alone(DType::f32, 14, 6);
  if (world().rank() > 0) model.parameters[2].data<float>()[5] = 7;  // rank 0 overwrites it
  DistributedExecution execution(world(), pipeline_of(4), {.verify_every = 1});
  Execution expected({.accumulation = 4});
  const auto optimizer = adamw();
  const auto optimizer_alone = adamw();
  for (int step = 0; step < 5; ++step) {
    const Gradients gradients = execution.gradients(model.loss(), model.parameters, model.batch);
    CHECK(gradients.report().plan_reused == (step > 0));
    optimizer->step(gradients);
    optimizer_alone->step(expected.gradients(alone.loss(), alone.parameters, alone.batch));
  }
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    CHECK(same_bits(model.parameters[i], alone.parameters[i]));
  }
}

TEST_CASE("the report of a rank has the stages and the timeline of all") {
  const int size = world().size();
  constexpr int parts = 6;
  const Case layers{"layers", Model(DType::f32, 12, 8)};
  DistributedExecution execution(world(), pipeline_of(parts));
  const Gradients gradients =
      execution.gradients(layers.model.loss(), layers.model.parameters, layers.model.batch);
  DistributedExecution whole(world(), pipeline_of(1));
  whole.gradients(layers.model.loss(), layers.model.parameters, layers.model.batch);
  for (const RankReport& of_rank : whole.reports()) CHECK(of_rank.examples == 12);
  const Report& report = gradients.report();
  REQUIRE(std::ssize(report.stages) == size);
  for (int s = 0; s < size; ++s) {
    const auto index = static_cast<std::size_t>(s);
    const Report::Stage& stage = report.stages[index];
    const RankReport& of_rank = execution.reports()[index];
    CHECK(stage.in_flight == std::min(size - s, parts));
    CHECK(stage.predicted_peak == of_rank.predicted_peak);
    CHECK(stage.measured_peak == of_rank.measured_peak);
    CHECK(stage.measured_peak > 0);
    CHECK(of_rank.examples == 12);
    // At least one message to each neighbour per micro-batch: forward to the next rank, backward to
    // the previous one.
    const int neighbours = (s > 0 ? 1 : 0) + (s + 1 < size ? 1 : 0);
    CHECK(of_rank.messages >= parts * neighbours);
    CHECK(of_rank.bytes >= parts * neighbours * Bytes{128});  // two examples: 96, in cache lines
    CHECK(of_rank.bytes % 64 == 0);
    CHECK(of_rank.buckets == 0);
  }
  const auto own = static_cast<std::size_t>(world().rank());
  CHECK(report.predicted_peak == report.stages[own].predicted_peak);
  REQUIRE(std::ssize(report.timeline) == 2 * parts * size);
  for (std::size_t i = 0; i < report.timeline.size(); ++i) {
    const Report::StageTask& task = report.timeline[i];
    CHECK(task.stage == static_cast<int>(i) / (2 * parts));
    CHECK(task.start <= task.end);
    if (i > 0 && report.timeline[i - 1].stage == task.stage) {
      CHECK(report.timeline[i - 1].end <= task.start);
    }
  }
  CHECK(report.idle() < 1);
  const TemporaryFile file;
  report.write_chrome_trace(file.path());
  const std::vector<TraceEvent> events = read_trace(file.path());
  CHECK(std::ranges::count(events, "X", &TraceEvent::phase) == 2 * parts * size);
}

}  // namespace
}  // namespace palimpsest::rank_pipeline_test
