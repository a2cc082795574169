// Results that executions cache from run to run.
#include <oneapi/tbb/global_control.h>

#include <algorithm>

#include "strategy/evaluators/engine.h"
#include "tests/strategy/execution/runs.h"

namespace palimpsest::cached_test {
namespace {

struct FourThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

/// Reads its weights only through values computed from them alone.
Var scores(Tape&, std::span<const Var> p, std::span<const Var> batch) {
  return matmul(batch[0], tanh(matmul(p[0], p[0])));
}

const std::vector<Tensor> weights{Tensor::normal({16, 16}, 1, 0, 0.2)};

Tensor examples(std::uint64_t seed, std::int64_t count = 12) {
  return Tensor::uniform({count, 16}, seed, -1, 1);
}

ExecutionStrategy with(AllocationPolicy memory, int replicas) {
  ExecutionStrategy strategy{.run = {.memory = memory}};
  if (replicas > 1) {
    strategy.parallelism = ParallelMode::data_parallel;
    strategy.workers = replicas;
  }
  return strategy;
}

TEST_CASE_METHOD(FourThreads, "execution: what weights alone make is kept for other batches") {
  for (const int replicas : {1, 2, 3}) {
    CAPTURE(replicas);
    Execution usual(with(AllocationPolicy::minimal_peak, replicas));
    Execution cached(with(AllocationPolicy::cached, replicas));
    for (std::uint64_t step = 0; step < 5; ++step) {
      const std::vector<Tensor> batch{examples(step)};
      const Tensor expected = usual.value(scores, weights, batch);
      CHECK(same_bits(cached.value(scores, weights, batch), expected));
      const auto kept = step < 2 ? 0u : static_cast<std::uint32_t>(replicas);
      CHECK(cached.report().cached == kept);
      CHECK(cached.report().computed < usual.report().computed + (kept > 0 ? 0 : 1));
    }
  }
}

TEST_CASE_METHOD(FourThreads, "execution: micro-batches find what the one before made of weights") {
  const ModelFunction loss = [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    return mean(square(scores(tape, p, batch)));
  };
  std::vector<Tensor> moving{weights[0].clone()};
  for (const int replicas : {1, 2}) {
    CAPTURE(replicas);
    ExecutionStrategy strategy = with(AllocationPolicy::minimal_peak, replicas);
    strategy.accumulation = 3;
    Execution usual(strategy);
    strategy.run.memory = AllocationPolicy::cached;
    Execution cached(strategy);
    for (std::uint64_t step = 0; step < 4; ++step) {
      // So many that at the peak of a step there is room for what the weights make.
      const std::vector<Tensor> batch{examples(step, 192)};
      const Gradients expected = usual.gradients(loss, moving, batch);
      const Gradients found = cached.gradients(loss, moving, batch);
      CHECK(same_bits(found.begin()->gradient, expected.begin()->gradient));
      // The second run detects the unchanged values, and the third one has them cached.
      CHECK(found.report().cached >= static_cast<std::uint32_t>(replicas));
      CHECK(found.report().computed < expected.report().computed);
      moving[0].data<float>()[step] += 0.1f;
    }
  }
}

LossAndOutputs mean_of_scores(Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
  return mean(square(scores(tape, p, batch)));
}

/// Values of examples and of weights that are kept although nothing needs them at the peak.
LossAndOutputs features(Tape&, std::span<const Var> p, std::span<const Var> batch) {
  Var x = batch[0];
  for (int k = 0; k < 3; ++k) x = tanh(x + relu(x));
  const Var w = tanh(p[0]) + exp(p[0]);
  const Var y = tanh(matmul(x, w));
  return {mean(square(y)), {y}};
}

struct Case {
  ModelFunction model;
  std::int64_t examples;
  int replicas;
  int accumulation;
  bool is_fixed;  ///< weights and batch do not change
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ModelFunction& model : {ModelFunction(mean_of_scores), ModelFunction(features)}) {
    for (const std::int64_t examples : {13, 192}) {
      for (const int replicas : {1, 2}) {
        for (const int accumulation : {1, 3}) {
          for (const bool is_fixed : {false, true}) {
            all.push_back({model, examples, replicas, accumulation, is_fixed});
          }
        }
      }
    }
  }
  return all;
}

/// Checks five steps within a budget. Returns the most bytes that the first one takes.
Bytes check_steps(const Case& c, Bytes budget) {
  ExecutionStrategy strategy = with(AllocationPolicy::cached, c.replicas);
  strategy.accumulation = c.accumulation;
  strategy.run.memory_budget = budget;
  ExecutionStrategy without = strategy;
  without.run.memory = AllocationPolicy::minimal_peak;
  const std::vector<Tensor> batch{examples(1, c.examples)};
  const Bytes estimated = estimate(strategy, {c.model, weights, batch}).peak;
  const std::vector<Tensor> moving{weights[0].clone()};
  Execution execution(strategy);
  Execution usual(without);
  Bytes first = 0;
  std::uint32_t computed = 0;
  for (std::uint64_t step = 0; step < 5; ++step) {
    CAPTURE(c.examples, c.replicas, c.accumulation, c.is_fixed, budget, step);
    const std::vector<Tensor> now{c.is_fixed ? batch[0] : examples(step, c.examples)};
    const Gradients made = execution.gradients(c.model, moving, now);
    const Report& report = made.report();
    if (step == 0) first = report.measured_peak;
    if (step == 0) computed = report.computed;
    CHECK((report.measured_peak <= first || report.cached_bytes == 0));
    if (budget == unlimited) CHECK(report.computed <= computed);
    CHECK(report.measured_peak <= report.predicted_peak);
    if (budget == unlimited) CHECK(report.predicted_peak <= estimated);
    CHECK(report.predicted_peak <= budget);
    CHECK(report.budget == budget);
    const Gradients expected = usual.gradients(c.model, moving, now);
    CHECK(same_bits(made.begin()->gradient, expected.begin()->gradient));
    CHECK(same_bits(made.loss(), expected.loss()));
    if (!c.is_fixed) moving[0].data<float>()[step] += 0.1f;
  }
  return first;
}

TEST_CASE_METHOD(
    FourThreads,
    "execution: with kept results no step takes more than the first, or than estimated") {
  for (const Case& c : cases()) {
    const Bytes first = check_steps(c, unlimited);
    if (c.is_fixed) continue;
    for (const Bytes budget : {first, 4 * first}) check_steps(c, budget);
    Bytes least = 1;
    try {
      check_steps(c, least);
    } catch (const BudgetError& error) {
      least = error.smallest_feasible();
    }
    check_steps(c, least);
  }
}

TEST_CASE_METHOD(FourThreads, "execution: values with kept results take no more than the first") {
  for (const int replicas : {1, 2}) {
    const ExecutionStrategy strategy = with(AllocationPolicy::cached, replicas);
    const Bytes estimated = estimate(strategy, {scores, weights, {examples(0)}, false}).peak;
    Execution execution(strategy);
    for (std::uint64_t step = 0; step < 5; ++step) {
      execution.value(scores, weights, std::vector<Tensor>{examples(step)});
      CHECK(execution.report().measured_peak <= estimated);
      CHECK(execution.report().predicted_peak <= estimated);
    }
  }
}

TEST_CASE("execution: steps that keep no results are planned as without them") {
  const auto evaluator = lazy({.memory = AllocationPolicy::cached});
  Tape tape(evaluator);
  for (int step = 0; step < 4; ++step) {
    tape.clear();
    const Var x = tape.constant(examples(step));
    const Var w = tape.parameter(Tensor::normal({16, 16}, step));
    const Gradients made = backward(mean(tanh(matmul(x, w))), {.memory = AllocationPolicy::cached});
    CHECK(made.report().cached_bytes == 0);
    CHECK(evaluator->engine().plans_made() == 1);
  }
}

TEST_CASE("execution: what one result takes does not limit the results kept for another") {
  const auto evaluator = lazy({.memory = AllocationPolicy::cached});
  evaluator->engine().keep_values_within_first_run();
  Tape tape(evaluator);
  for (int step = 0; step < 4; ++step) {
    CAPTURE(step);
    tape.clear();
    const Var x = tape.constant(examples(step, 192));
    const Var small = sum(tape.constant(weights[0]));
    const Var large = tanh(tanh(matmul(x, tanh(tape.constant(weights[0])))));
    const Var& target = step == 0 ? small : large;
    const Report report = evaluate({&target, 1}, {.memory = AllocationPolicy::cached});
    CHECK(report.cached == (step < 3 ? 0 : 1));
  }
}

/// A result, and a value that is equal to it or from which it is computed.
struct Pair {
  Var result;
  Var read;
};

TEST_CASE("execution: a write into a result changes no kept value that is equal to it") {
  using Form = Pair (*)(const Var& w, int step);
  const auto repeated = [](const Var& w, int) { return Pair{tanh(w), tanh(w)}; };
  const auto identity = [](const Var& w, int) {
    const Var e = tanh(w);
    return Pair{e * 1.0, e};
  };
  const auto of_leaf = [](const Var& w, int) { return Pair{tanh(w), w * 1.0}; };
  const auto changed = [](const Var& w, int step) {
    const Var e = tanh(w);
    return Pair{e * (step == 2 ? 1.0 : 2.0), e};
  };
  for (const Form form : {Form(repeated), Form(identity), Form(of_leaf), Form(changed)}) {
    const auto evaluator = lazy({.memory = AllocationPolicy::cached});
    Tape tape(evaluator);
    Tape plain;
    for (int step = 0; step < 5; ++step) {
      CAPTURE(step);
      tape.clear();
      plain.clear();
      Tensor w = weights[0].clone();
      const auto record = [&](Tape& on) {
        const Pair made = form(on.constant(w), step);
        return Pair{made.result, matmul(on.constant(examples(step)), made.read)};
      };
      const Pair expected = record(plain);
      const Pair found = record(tape);
      const Var targets[] = {found.result, found.read};
      const Report report = evaluate(targets, {.memory = AllocationPolicy::cached});
      CHECK(evaluator->engine().meter().live() <= report.predicted_peak);
      CHECK(same_bits(found.read.value(), expected.read.value()));
      CHECK(same_bits(found.result.value(), expected.result.value()));
      Tensor result = found.result.value();
      std::ranges::fill(result.data<float>(), 7.0f);
      std::ranges::fill(w.data<float>(), 7.0f);
    }
  }
}

}  // namespace
}  // namespace palimpsest::cached_test
