// Means over counted targets, and batches that differ, over ranks.
#include <algorithm>
#include <cmath>

#include "palimpsest.h"
#include "strategy/mpi/rank_link.h"
#include "tests/strategy/mpi/model.h"
#include "tests/strategy/mpi/ranks.h"

namespace palimpsest::counted_means_over_ranks_test {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t none = -100;
constexpr std::int64_t examples = 13;

/// Sequences of four tokens, of which the first sequences have no targets.
struct Tokens {
  std::vector<Tensor> parameters{Tensor::normal({4, 3}, 1, 0, 1, DType::f64),
                                 Tensor::normal({4, 3}, 2, 0, 1, DType::f64)};
  std::vector<Tensor> batch{Tensor::normal({examples, 4, 4}, 3, 0, 1, DType::f64)};

  Tokens() {
    std::vector<std::int64_t> targets;
    for (std::int64_t i = 0; i < examples; ++i) {
      for (std::int64_t t = 0; t < 4; ++t) targets.push_back(t < i - 6 ? (t + i) % 3 : none);
    }
    batch.push_back(Tensor::from(targets, {examples, 4}));
  }
  std::vector<Tensor> rows(std::int64_t first, std::int64_t last) const {
    std::vector<Tensor> some;
    for (const Tensor& tensor : batch) some.push_back(tensor[{Slice{first, last}}]);
    return some;
  }
};

std::vector<ExecutionStrategy> strategies() {
  std::vector<ExecutionStrategy> all;
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    all.push_back({.mode = mode, .accumulation = 2});
  }
  all.push_back({.accumulation = 3, .parallelism = ParallelMode::pipeline});
  return all;
}

std::string name_of(const ExecutionStrategy& strategy) {
  const bool is_pipeline = strategy.parallelism == ParallelMode::pipeline;
  return is_pipeline ? "pipeline" : std::string(palimpsest::name_of(strategy.mode));
}

TEST_CASE("counted means over ranks: gradients are those of the whole batch") {
  const Tokens model;
  const ModelFunction loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Var x = tanh(matmul(b[0], p[0]));
    return cross_entropy(x, b[1], {.ignore_index = none}) + 0.1 * mean(square(x)) +
           0.01 * sum(square(p[1]));
  };
  Execution alone;
  const Gradients whole = alone.gradients(loss, model.parameters, model.batch);
  const Found expected(whole);
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    for (const int accumulation : {1, 2, 3}) {
      for (const bool deterministic : {false, true}) {
        CAPTURE(name_of(mode), accumulation, deterministic);
        DistributedExecution execution(world(), {.mode = mode, .accumulation = accumulation},
                                       {.deterministic = deterministic});
        for (int step = 0; step < 2; ++step) {
          const Gradients made = execution.gradients(loss, model.parameters, model.batch);
          CHECK(made.counts().counts == whole.counts().counts);
          const Found found(made);
          CHECK(distance(found, expected) < 1e-12);
          CHECK(std::abs(found.loss - expected.loss) < 1e-12);
        }
      }
    }
  }
}

TEST_CASE("counted means over ranks: shards of any size and a pipeline") {
  const Tokens model;
  const ModelFunction loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Var x = tanh(matmul(b[0], p[0]));
    const Var y = matmul(b[0], p[1]);
    return cross_entropy(x, b[1], {.ignore_index = none}) + 0.1 * mean(square(y));
  };
  Execution alone;
  const Found expected(alone.gradients(loss, model.parameters, model.batch));
  const int last = world().size() - 1;
  const std::int64_t first = world().rank();  // one example on each rank but the last
  const std::int64_t end = world().rank() == last ? examples : first + 1;
  DistributedExecution shards(world());
  const Found found(shards.gradients_of_shard(loss, model.parameters, model.rows(first, end)));
  CHECK(distance(found, expected) < 1e-12);
  CHECK(std::abs(found.loss - expected.loss) < 1e-12);
  if (world().size() == 1) return;
  ExecutionStrategy strategy{.accumulation = 5};
  strategy.parallelism = ParallelMode::pipeline;
  DistributedExecution pipeline(world(), strategy);
  const Found piped(pipeline.gradients(loss, model.parameters, model.batch));
  CHECK(distance(piped, expected) < 1e-12);
}

TEST_CASE("counted means over ranks: a budget that is named is enough to count them") {
  const Tokens model;
  std::uint32_t parts_at_once = 0;
  const ModelFunction loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    const std::int64_t elements = tape.part() < parts_at_once ? 1000 : 2000;
    const Var wide = cumsum(broadcast_to(sum(square(b[0])), {elements}), 0);
    return weighted_mean(sum(square(matmul(b[0], p[0]))), sum(wide)) + sum(square(p[1]));
  };
  constexpr Bytes of_wide = 16000;
  std::vector<ExecutionStrategy> ways{{.accumulation = 2}};
  if (world().size() > 1) {
    ways.push_back({.accumulation = 3, .parallelism = ParallelMode::pipeline});
  }
  for (ExecutionStrategy& strategy : ways) {
    CAPTURE(strategy.summary());
    const bool is_pipeline = strategy.parallelism == ParallelMode::pipeline;
    parts_at_once = is_pipeline ? 1 : static_cast<std::uint32_t>(world().size());
    const auto named_by = [&](Bytes budget) {
      strategy.run.memory_budget = budget;
      DistributedExecution execution(world(), strategy);
      try {
        execution.gradients(loss, model.parameters, model.batch);
      } catch (const BudgetError& error) {
        return error.smallest_feasible();
      }
      return Bytes{0};
    };
    const std::vector<Bytes> named = world().link().gather(named_by(1));
    CHECK(std::ranges::min(named) >= of_wide);
    // Enough to count some parts, and not the others.
    const std::vector<Bytes> others = world().link().gather(named_by(of_wide - 2000));
    CHECK(std::ranges::max(others) == std::ranges::max(named));
    CHECK(named_by(std::ranges::max(named)) == 0);
  }
}

TEST_CASE("counted means over ranks: kept results do not depend on older counts of other ranks") {
  const Tokens model;
  const std::int64_t shard = 4;
  const ModelFunction loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return weighted_mean(sum(square(matmul(b[0], p[0])) * b[1]), sum(b[1])) + sum(square(p[1]));
  };
  DistributedExecution execution(world(), {.run = {.memory = AllocationPolicy::cached}});
  Tape tape;
  for (const double mask : {1.0, 1.0, 0.5, 0.25, 0.25}) {
    // The weights of rank 0 stay the same, and those of the others do not.
    const auto batch_of = [&](int rank) {
      return std::vector<Tensor>{model.rows(0, shard)[0],
                                 Tensor::full({shard, 4, 1}, rank == 0 ? 1.0 : mask, DType::f64)};
    };
    const Found found(
        execution.gradients_of_shard(loss, model.parameters, batch_of(world().rank())));
    std::vector<Tensor> parts[2];
    for (int rank = 0; rank < world().size(); ++rank) {
      const std::vector<Tensor> batch = batch_of(rank);
      for (std::size_t i = 0; i < 2; ++i) parts[i].push_back(batch[i]);
    }
    tape.clear();
    std::vector<Var> parameters;
    for (const Tensor& each : model.parameters) parameters.push_back(tape.parameter(each));
    std::vector<Var> batch;
    for (const std::vector<Tensor>& tensors : parts) {
      std::vector<Var> each;
      for (const Tensor& tensor : tensors) each.push_back(tape.constant(tensor));
      batch.push_back(concat(each, 0));
    }
    const Found whole(backward(loss(tape, parameters, batch).loss));
    CHECK(distance(found, whole) < 1e-12);
  }
}

TEST_CASE("counted means over ranks: a loss without parameters") {
  const Tokens model;
  const ModelFunction loss = [](Tape& tape, std::span<const Var>, std::span<const Var> b) {
    const Var w = tape.constant(Tensor::normal({4, 3}, 1, 0, 1, DType::f64));
    return cross_entropy(matmul(b[0], w), b[1], {.ignore_index = none});
  };
  Tape tape;
  const double expected =
      loss(tape, {}, std::vector<Var>{tape.constant(model.batch[0]), tape.constant(model.batch[1])})
          .loss.item();
  for (const ExecutionStrategy& strategy : strategies()) {
    if (strategy.parallelism == ParallelMode::pipeline) continue;  // it needs parameters
    CAPTURE(name_of(strategy));
    DistributedExecution execution(world(), strategy);
    const double found = execution.gradients(loss, {}, model.batch).loss().item();
    CHECK(std::abs(found - expected) < 1e-12);
  }
}

TEST_CASE("counted means over ranks: a model that fails to count fails on all ranks") {
  if (world().size() == 1) return;
  const Tokens model;
  const ModelFunction loop = [](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    return scan(tape.constant(Tensor::zeros({}, DType::f64)), 2,
                [&](const Var& sum, const StepNumber&) {
                  return sum + cross_entropy(matmul(b[0], p[0]), b[1], {.ignore_index = none});
                });
  };
  for (const ExecutionMode mode : {ExecutionMode::lazy, ExecutionMode::eager}) {
    DistributedExecution execution(world(), {.mode = mode});
    CHECK_THROWS_AS(execution.gradients(loop, model.parameters, model.batch), ArgumentError);
  }
}

/// The strategies whose ranks share counts in ways of their own.
Var two_terms(std::span<const Var> p, std::span<const Var> b) {
  const Var first = cross_entropy(matmul(b[0], p[0]), b[1], {.ignore_index = none});
  return first + mean(square(matmul(b[0], p[1])));
}

TEST_CASE("counted means over ranks: a rank that fails at any call of the model") {
  if (world().size() == 1) return;
  const Tokens model;
  for (const ExecutionStrategy& strategy : strategies()) {
    DistributedExecution execution(world(), strategy);
    int calls = 0;
    int fails_at = 0;  // never
    const ModelFunction loss = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
      if (++calls == fails_at) throw FileError("cannot read");
      return two_terms(p, b);
    };
    const auto step = [&] {
      calls = 0;
      return execution.gradients(loss, model.parameters, model.batch);
    };
    const Found expected(step());
    const int last = calls;  // of a step
    CHECK(last >= 2);
    for (int call = 1; call <= last; ++call) {
      for (int rank = 0; rank < world().size(); ++rank) {
        CAPTURE(name_of(strategy), call, rank);
        fails_at = world().rank() == rank ? call : 0;
        const Failure failure = failure_of(step);
        CHECK((fails_at > 0 ? failure.own : failure.of_other) != "");
        CHECK(world().first_failed() == rank);
        fails_at = 0;
        CHECK(distance(Found(step()), expected) < 1e-14);
      }
    }
  }
}

TEST_CASE("counted means over ranks: losses that count other means are an error on all ranks") {
  if (world().size() == 1) return;
  const Tokens model;
  const bool is_other = world().rank() == 1;
  for (const ExecutionStrategy& strategy : strategies()) {
    for (const bool counts_more : {false, true}) {
      CAPTURE(name_of(strategy), counts_more);
      DistributedExecution execution(world(), strategy);
      const auto step = [&](const ModelFunction& loss) {
        return failure_of([&] { execution.gradients(loss, model.parameters, model.batch); });
      };
      const Failure others = step([&](Tape&, std::span<const Var> p, std::span<const Var> b) {
        const Var counted = two_terms(p, b);
        if (is_other != counts_more) return mean(square(matmul(b[0], p[0] + p[1])));
        return counts_more ? counted + two_terms(p, b) : counted;
      });
      CHECK(others.of_other != "");
      CHECK(others.rank == 1);
      const auto alike = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
        return two_terms(p, b);
      };
      CHECK(step(alike).of_other + step(alike).own == "");
    }
  }
}

TEST_CASE("counted means over ranks: micro-batches that record different numbers of means") {
  if (world().size() == 1) return;
  const Tokens model;
  for (const ExecutionStrategy& strategy : strategies()) {
    for (const bool has_one : {false, true}) {
      CAPTURE(name_of(strategy), has_one);
      DistributedExecution execution(world(), strategy);
      int calls = 0;
      const Failure failure = failure_of([&] {
        const ModelFunction loss = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
          const Var usual = has_one ? two_terms(p, b) : mean(square(matmul(b[0], p[0] + p[1])));
          const bool is_second = ++calls == 2 && world().rank() == 1;
          return is_second ? usual + two_terms(p, b) : usual;
        };
        execution.gradients(loss, model.parameters, model.batch);
      });
      CHECK(failure.own + failure.of_other != "");
      if (failure.own.empty()) CHECK(failure.rank == 1);
    }
  }
}

TEST_CASE("counted means over ranks: a budget of one rank that is too small names one that works") {
  if (world().size() == 1) return;
  const Tokens model;
  const ModelFunction loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return two_terms(p, b);
  };
  const auto within = [&](Bytes budget) {
    const bool is_limited = world().rank() == 1;
    DistributedExecution execution(
        world(), {.run = {.memory_budget = is_limited ? budget : Bytes{1'000'000}}});
    execution.gradients(loss, model.parameters, model.batch);
  };
  Bytes least = 1;
  try {
    within(least);
  } catch (const BudgetError& error) {
    least = error.smallest_feasible();
  } catch (const RankError& error) {
    CHECK(error.rank() == 1);
  }
  CHECK_NOTHROW(within(least));
}

TEST_CASE("batches that differ are an error on all ranks") {
  if (world().size() == 1) return;
  const Tokens model;
  const ModelFunction loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return mean(square(matmul(b[0], p[0]))) + mean(square(matmul(b[0], p[1])));
  };
  const bool is_other = world().rank() == 1;
  for (const int stages : {0, world().size()}) {
    ExecutionStrategy strategy;
    if (stages > 0) {
      strategy.parallelism = ParallelMode::pipeline;
      strategy.accumulation = 2;
    }
    DistributedExecution execution(world(), strategy, {.verify_every = 1});
    const auto step = [&](const std::vector<Tensor>& batch) {
      return failure_of([&] { execution.gradients(loss, model.parameters, batch); });
    };
    const Failure fewer = step(model.rows(0, is_other ? 12 : 13));
    CHECK_THAT(fewer.of_other, Contains("13 examples") && Contains("12 examples") &&
                                   Contains("gradients_of_shard"));
    CHECK(fewer.rank == 1);
    CHECK(step(model.batch).of_other.empty());
    // Equally many examples, but others: noticed where parameters are compared too.
    const Failure others = step(is_other ? model.rows(1, 13) : model.rows(0, 12));
    CHECK_THAT(others.of_other, Contains("tensor 0 of the batch"));
    CHECK(step(model.batch).of_other.empty());
  }
}

}  // namespace
}  // namespace palimpsest::counted_means_over_ranks_test
