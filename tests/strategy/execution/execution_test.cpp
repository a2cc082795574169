#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::execution_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

/// A small network on random data, whose loss is a mean or a sum over examples.
struct Network {
  std::vector<Tensor> parameters{Tensor::uniform({12, 20}, 1, -0.4, 0.4, DType::f64),
                                 Tensor::uniform({20}, 2, -0.1, 0.1, DType::f64),
                                 Tensor::uniform({20, 3}, 3, -0.4, 0.4, DType::f64)};
  std::vector<Tensor> batch{Tensor::uniform({13, 12}, 4, -1, 1, DType::f64),
                            Tensor::uniform({13, 3}, 5, -1, 1, DType::f64)};
  bool is_sum = false;
  double dropped = 0;

  Var output(std::span<const Var> p, std::span<const Var> batch) const {
    Var y = tanh(matmul(batch[0], p[0]) + p[1]);
    if (dropped > 0) y = dropout(y, dropped);
    return matmul(y, p[2]);
  }
  ModelFunction loss() const {
    return [this](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
      Var errors;
      {
        const auto scope = tape.scope("network");
        errors = output(p, b) - b[1];
      }
      const Var squares = sum(errors * errors, {1});
      return is_sum ? sum(squares) : mean(squares);
    };
  }
  ModelFunction value() const {
    return [this](Tape&, std::span<const Var> p, std::span<const Var> b) { return output(p, b); };
  }
};

struct Found {
  double loss;
  std::vector<Tensor> gradients;
  Report report;
};

Found run(const Network& network, const ExecutionStrategy& strategy) {
  Execution execution(strategy, network.is_sum ? LossReduction::sum : LossReduction::mean);
  Found found;
  for (int step = 0; step < 2; ++step) {
    const Gradients g = execution.gradients(network.loss(), network.parameters, network.batch);
    found.loss = g.loss().item();
    found.gradients.clear();
    for (const Gradients::Entry& entry : g) found.gradients.push_back(entry.gradient.clone());
    found.report = g.report();
  }
  return found;
}

void check_same(const Found& a, const Found& b) {
  CHECK(a.loss == b.loss);
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    CHECK(same_bits(a.gradients[i], b.gradients[i]));
  }
}

void check_near(const Found& a, const Found& b, double tolerance) {
  CHECK_THAT(a.loss, WithinRel(b.loss, tolerance));
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    for (std::int64_t k = 0; k < a.gradients[i].elements(); ++k) {
      CHECK(std::abs(a.gradients[i].at(k) - b.gradients[i].at(k)) < tolerance);
    }
  }
}

struct SomeThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

TEST_CASE_METHOD(SomeThreads, "execution: every pair of choices gives the same bits") {
  const Network network;
  const Found expected = run(network, {});
  const ExecutionMode modes[] = {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid};
  const AllocationPolicy memories[] = {AllocationPolicy::minimal_peak, AllocationPolicy::pooled,
                                       AllocationPolicy::standard, AllocationPolicy::cached};
  for (const ExecutionMode mode : modes) {
    for (const AllocationPolicy memory : memories) {
      if (memory == AllocationPolicy::cached && mode != ExecutionMode::lazy) continue;
      for (const ParallelMode parallelism : {ParallelMode::none, ParallelMode::automatic}) {
        for (const Bytes budget : {unlimited, Bytes{20'000}}) {
          for (const bool fusion : {true, false}) {
            ExecutionStrategy strategy{
                .mode = mode,
                .parallelism = parallelism,
                .run = {.memory_budget = budget, .memory = memory, .fuse = fusion}};
            if (mode == ExecutionMode::hybrid) strategy.stage = {.nodes = 3};
            CAPTURE(strategy.summary());
            const Found found = run(network, strategy);
            check_same(found, expected);
            CHECK(found.report.measured_peak <= found.report.predicted_peak);
            CHECK(found.report.predicted_peak <= budget);
            CHECK(found.report.memory == memory);
            if (parallelism == ParallelMode::none) CHECK(found.report.threads == 1);
          }
        }
      }
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "execution: replicas and micro-batches of as many parts agree") {
  for (const bool is_sum : {false, true}) {
    for (const double dropped : {0.0, 0.3}) {
      Network network;
      network.is_sum = is_sum;
      network.dropped = dropped;
      const Found whole = run(network, {});
      const Found six = run(network, {.accumulation = 6});
      if (dropped == 0) check_near(six, whole, 1e-13);
      for (const int workers : {1, 2, 3, 6}) {
        for (const ExecutionMode mode : {ExecutionMode::lazy, ExecutionMode::eager}) {
          CAPTURE(is_sum, dropped, workers, name_of(mode));
          const Found found = run(network, {.mode = mode,
                                            .accumulation = 6 / workers,
                                            .parallelism = ParallelMode::data_parallel,
                                            .workers = workers});
          check_same(found, six);
          CHECK(found.report.replicas == workers);
          CHECK(found.report.micro_batches == 6 / workers);
        }
      }
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "execution: replicas are recorded by several threads") {
  const Network network;
  std::mutex mutex;
  std::vector<std::int64_t> examples;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  const auto loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    const int now = ++inside;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (most < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    {
      const std::lock_guard lock(mutex);
      examples.push_back(b[0].shape()[0]);
    }
    --inside;
    return network.loss()(tape, p, b);
  };
  Execution execution({.parallelism = ParallelMode::data_parallel, .workers = 3});
  execution.gradients(loss, network.parameters, network.batch);
  CHECK(most >= 2);
  std::ranges::sort(examples);
  CHECK(examples == std::vector<std::int64_t>{4, 4, 5});
}

TEST_CASE_METHOD(SomeThreads, "execution: budgets cover replicas and sums, and name the smallest") {
  const Network network;
  const ExecutionStrategy base{.accumulation = 2,
                               .parallelism = ParallelMode::data_parallel,
                               .workers = 2,
                               .run = {.memory_budget = 1}};
  Bytes smallest = 0;
  std::atomic<int> calls = 0;
  const ModelFunction counted = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    ++calls;
    return network.loss()(tape, p, b);
  };
  try {
    Execution(base).gradients(counted, network.parameters, network.batch);
    FAIL("a byte is enough");
  } catch (const BudgetError& error) {
    smallest = error.smallest_feasible();
    CHECK(error.budget() == 1);
    CHECK_THAT(error.what(), Contains("running 2 parts of a batch at once"));
  }
  CHECK(calls == 3);  // two parts at once and one of the other size: recorded, not run
  ExecutionStrategy enough = base;
  enough.run.memory_budget = smallest;
  const Found found = run(network, enough);
  CHECK(found.report.measured_peak <= found.report.predicted_peak);
  CHECK(found.report.predicted_peak <= smallest);
  CHECK(found.report.budget == smallest);
  check_same(found, run(network, {.accumulation = 4}));
}

TEST_CASE_METHOD(SomeThreads, "execution: values of a batch") {
  const Network network;
  Execution usual({.gradient = GradientMode::none});
  const Tensor expected = usual.value(network.value(), network.parameters, network.batch);
  CHECK(expected.shape() == Shape{13, 3});
  Execution training;
  const Report gradients =
      training.gradients(network.loss(), network.parameters, network.batch).report();
  CHECK(usual.report().measured_peak < gradients.measured_peak);
  CHECK(usual.report().measured_peak <= usual.report().predicted_peak);
  for (const int workers : {1, 2, 4}) {
    Execution execution({.gradient = GradientMode::none,
                         .parallelism = ParallelMode::data_parallel,
                         .workers = workers});
    const Tensor found = execution.value(network.value(), network.parameters, network.batch);
    CHECK(found.shape() == expected.shape());
    for (std::int64_t k = 0; k < found.elements(); ++k) {
      CHECK_THAT(found.at(k), WithinRel(expected.at(k), 1e-14));
    }
  }
  CHECK_THROWS_WITH(usual.gradients(network.loss(), network.parameters, network.batch),
                    Contains("gradient = none"));
}

TEST_CASE_METHOD(SomeThreads, "execution: checkpointed in every way, and strategies with names") {
  const Network network;
  const Found expected = run(network, {});
  std::vector<ExecutionStrategy> strategies;
  for (const ExecutionMode mode : {ExecutionMode::lazy, ExecutionMode::hybrid}) {
    ExecutionStrategy s{.mode = mode, .gradient = GradientMode::checkpointed};
    if (mode == ExecutionMode::hybrid) s.stage = {.nodes = 3};
    strategies.insert(strategies.end(), 3, s);
    strategies[strategies.size() - 3].checkpoint_interval = 2;
    strategies[strategies.size() - 2].checkpoint_fraction = 0.1;
    strategies[strategies.size() - 1].checkpoint_planner = "chain";
    strategies[strategies.size() - 1].run.memory_budget = 2 * expected.report.predicted_peak;
  }
  strategies.push_back({.mode = ExecutionMode::eager, .gradient = GradientMode::full});
  for (const NamedStrategy& named : named_strategies()) {
    const ExecutionStrategy& chosen = named.strategy;
    const bool has_other_bits =
        chosen.parallelism == ParallelMode::data_parallel || chosen.precision.has_value();
    if (chosen.gradient != GradientMode::none && !has_other_bits) strategies.push_back(chosen);
  }
  for (const ExecutionStrategy& strategy : strategies) {
    CAPTURE(strategy.summary());
    const Found found = run(network, strategy);
    check_same(found, expected);
    CHECK(found.report.measured_peak <= found.report.predicted_peak);
    if (strategy.checkpoint_interval && strategy.mode == ExecutionMode::lazy) {
      CHECK(found.report.recomputed > 0);
    }
    Execution execution(strategy);
    const Tensor value = execution.value(network.value(), network.parameters, network.batch);
    CHECK(value.shape() == Shape{13, 3});
    CHECK(execution.report().micro_batches == 1);
  }
  const Found shards = run(network, strategy_named("high-throughput"));
  check_same(shards, run(network, {.accumulation = shards.report.replicas}));
  CHECK(shards.report.replicas == 4);
  CHECK_FALSE(run(network, strategy_named("profile")).report.steps.empty());
  check_same(run(network, strategy_named("mixed-precision")),
             run(network, {.precision = Precision{PrecisionKind::mixed, DType::bf16}}));
}

TEST_CASE_METHOD(SomeThreads, "execution: threads are those that were asked for") {
  const Network network;
  const Found few = run(
      network, {.parallelism = ParallelMode::data_parallel, .workers = 4, .run = {.threads = 2}});
  CHECK(few.report.threads == 2);
  CHECK(few.report.replicas == 4);
  Execution execution({.parallelism = ParallelMode::data_parallel});
  const auto count = [&] {
    return execution.gradients(network.loss(), network.parameters, network.batch).report().replicas;
  };
  CHECK(count() == 4);
  const std::vector<Tensor> two{Tensor::ones({2, 12}, DType::f64),
                                Tensor::ones({2, 3}, DType::f64)};
  CHECK(execution.gradients(network.loss(), network.parameters, two).report().replicas == 2);
  CHECK(count() == 4);
}

TEST_CASE("execution: what micro-batches computed is not kept, and values change no gradient") {
  Network network;
  network.dropped = 0.2;
  for (const ExecutionMode mode : {ExecutionMode::eager, ExecutionMode::hybrid}) {
    const Bytes one = run(network, {.mode = mode, .accumulation = 1}).report.measured_peak;
    const Bytes six = run(network, {.mode = mode, .accumulation = 6}).report.measured_peak;
    CHECK(six < one);
  }
  Execution alone({.accumulation = 3});
  Execution mixed({.accumulation = 3});
  for (int step = 0; step < 3; ++step) {
    mixed.value(network.value(), network.parameters, network.batch);
    const Gradients expected = alone.gradients(network.loss(), network.parameters, network.batch);
    const Gradients found = mixed.gradients(network.loss(), network.parameters, network.batch);
    CHECK(same_bits(found.entries()[0].gradient, expected.entries()[0].gradient));
  }
}

TEST_CASE_METHOD(SomeThreads, "execution: random numbers go on where replicas change") {
  Network network;
  network.dropped = 0.4;
  Execution execution({.parallelism = ParallelMode::data_parallel});
  const auto first = [&](std::span<const Tensor> batch) {
    return execution.gradients(network.loss(), network.parameters, batch)
        .entries()[0]
        .gradient.clone();
  };
  const std::vector<Tensor> two{Tensor::ones({2, 12}, DType::f64),
                                Tensor::ones({2, 3}, DType::f64)};
  const Tensor before = first(network.batch);
  first(two);  // with two replicas instead of four
  CHECK_FALSE(same_bits(first(network.batch), before));

  const ModelFunction noise = [](Tape&, std::span<const Var>, std::span<const Var> b) {
    return dropout(b[0], 0.5);
  };
  const std::vector<Tensor> ones{Tensor::ones({8, 12}, DType::f64)};
  const Tensor made = execution.value(noise, {}, ones);
  bool alike = true;
  for (std::int64_t k = 0; k < 24; ++k) alike = alike && made.at(k) == made.at(24 + k);
  CHECK_FALSE(alike);
}

TEST_CASE_METHOD(SomeThreads, "execution: no replica computes where one of them does not fit") {
  std::atomic<int> calls = 0;
  const CustomOperation counted{{.name = "counted",
                                 .forward =
                                     [&](const CustomCall& call) {
                                       ++calls;
                                       std::ranges::copy(call.inputs[0].data<double>(),
                                                         call.outputs[0].data<double>().begin());
                                     },
                                 .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }}};
  const Network network;
  const ModelFunction model = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Var error = network.output(p, {{counted({b[0]}), b[1]}}) - b[1];
    return mean(error * error);
  };
  ExecutionStrategy strategy{
      .parallelism = ParallelMode::data_parallel, .workers = 2, .run = {.memory_budget = 1}};
  Bytes smallest = 0;
  try {
    Execution(strategy).gradients(model, network.parameters, network.batch);
  } catch (const BudgetError& error) {
    smallest = error.smallest_feasible();
  }
  // The larger part of 13 examples has 7.
  strategy.run.memory_budget = smallest - 2;
  CHECK_THROWS_AS(Execution(strategy).gradients(model, network.parameters, network.batch),
                  BudgetError);
  CHECK(calls == 0);
  strategy.run.memory_budget = smallest;
  Execution(strategy).gradients(model, network.parameters, network.batch);
  CHECK(calls >= 2);
}

TEST_CASE("execution: trains, and optimizers take its gradients") {
  Network network;
  Execution execution({.accumulation = 3});
  const auto optimizer = adam({.learning_rate = 0.02});
  double first = 0;
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    const Gradients g = execution.gradients(network.loss(), network.parameters, network.batch);
    (step == 0 ? first : last) = g.loss().item();
    optimizer->step(g);
  }
  CHECK(last < first / 3);
}

TEST_CASE("execution: mixed precision scales losses, and leaves steps out that overflow") {
  Network network;
  for (Tensor& each : network.parameters) each = each.to(DType::f32);
  for (Tensor& each : network.batch) each = each.to(DType::f32);
  network.is_sum = true;
  const ModelFunction large = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    return 4.0 * network.loss()(tape, p, b).loss;
  };
  for (const int parts : {1, 3}) {
    Execution execution(
        {.precision = Precision{PrecisionKind::mixed, DType::f16}, .accumulation = parts},
        LossReduction::sum);
    const auto optimizer = sgd({.learning_rate = 1e-4});
    int overflows = 0;
    double first = 0;
    double last = 0;
    for (int step = 0; step < 40; ++step) {
      const Tensor before = network.parameters[0].clone();
      const Gradients g = execution.gradients(large, network.parameters, network.batch);
      CHECK(g.report().precision == "mixed f16");
      CHECK(g.report().loss_scale == 0x1p16 / std::pow(2, overflows));
      CHECK(g.loss().item() < 1'000);
      optimizer->step(g);
      (step == 0 ? first : last) = g.loss().item();
      CHECK(g.report().overflowed == same_bits(before, network.parameters[0]));
      overflows += g.report().overflowed ? 1 : 0;
    }
    CHECK(overflows > 0);
    CHECK(overflows < 10);
    CHECK(optimizer->steps() == 40 - overflows);
    CHECK(last < first);
  }
}

TEST_CASE("execution: memory is kept from step to step") {
  const Network network;
  Execution execution({.accumulation = 2, .run = {.memory = AllocationPolicy::pooled}});
  std::uint64_t allocations = 0;
  for (int step = 0; step < 3; ++step) {
    const Gradients g = execution.gradients(network.loss(), network.parameters, network.batch);
    allocations = g.report().allocations;
    CHECK(g.report().plan_reused == (step > 0));
  }
  CHECK(allocations < 10);
}

TEST_CASE("execution: a loss of several elements is an error of the line that recorded it") {
  const Network network;
  int line = 0;
  const ModelFunction several = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
    line = __LINE__ + 1;
    return tanh(matmul(b[0], p[0]));
  };
  std::vector<ExecutionStrategy> strategies{
      {},
      {.mode = ExecutionMode::eager},
      {.mode = ExecutionMode::hybrid},
      {.precision = Precision{PrecisionKind::mixed, DType::f16}},
      {.accumulation = 2, .parallelism = ParallelMode::pipeline, .stages = 2},
      {.parallelism = ParallelMode::data_parallel, .workers = 2, .run = {.memory_budget = 10_MiB}},
      {.parallelism = ParallelMode::model_parallel, .devices = {{}, {}}}};
  for (const ExecutionStrategy& strategy : strategies) {
    CAPTURE(strategy.summary());
    try {
      Execution(strategy).gradients(several, network.parameters, network.batch);
      FAIL("no error");
    } catch (const ShapeError& error) {
      CHECK_THAT(error.what(),
                 Contains("[backward]") && Contains("execution_test.cpp:" + std::to_string(line)));
    }
  }
}

TEST_CASE("execution: what goes wrong") {
  Network network;
  Execution execution({.accumulation = 4});
  const auto attempt = [&](const ModelFunction& model) {
    return execution.gradients(model, network.parameters, network.batch);
  };
  CHECK_THROWS_WITH(attempt(network.value()), Contains("backward"));
  CHECK_THROWS_WITH(
      attempt([](Tape&, std::span<const Var>, std::span<const Var>) { return Var(); }),
      Contains("[execution]") && Contains("does not return a value"));
  CHECK_THROWS_WITH(attempt([&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
                      return network.loss()(tape, p, b).loss +
                             sum(tape.parameter(Tensor::ones({2}, DType::f64)));
                    }),
                    Contains("4 parameters") && Contains("given 3"));
  const std::vector<Tensor> few{Tensor::ones({3, 12}, DType::f64),
                                Tensor::ones({3, 3}, DType::f64)};
  CHECK_THROWS_WITH(execution.gradients(network.loss(), network.parameters, few),
                    Contains("3 examples") && Contains("4 parts"));
  const std::vector<Tensor> uneven{Tensor::ones({8, 12}, DType::f64),
                                   Tensor::ones({9, 3}, DType::f64)};
  CHECK_THROWS_AS(execution.gradients(network.loss(), network.parameters, uneven), ShapeError);
  CHECK_THROWS_WITH(execution.gradients(network.loss(), network.parameters, {}),
                    Contains("no tensors"));
  Execution whole(
      {.gradient = GradientMode::none, .parallelism = ParallelMode::data_parallel, .workers = 2});
  CHECK_THROWS_WITH(whole.value(network.loss(), network.parameters, network.batch),
                    Contains("cannot be concatenated"));
  check_near(run(network, {.accumulation = 4}), run(network, {}), 1e-13);
}

}  // namespace
}  // namespace palimpsest::execution_test
