// Budgets of batches in parts whose means over counted targets are counted first.
#include "tests/strategy/execution/counted_tokens.h"

namespace palimpsest::counted_budgets_test {
namespace {

TEST_CASE_METHOD(FourThreads,
                 "counted means: a budget that is named is enough where counting takes the most") {
  SmallModel model = tokens({5, 1, 0, 3}, false);
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Var wide = cumsum(broadcast_to(sum(square(b[0])), {1000}), 0);
    return weighted_mean(sum(square(matmul(b[0], p[0]))), sum(wide)) + sum(square(p[1]));
  };
  constexpr Bytes of_wide = 8000;
  const Found expected = whole(model);
  for (const ExecutionStrategy& way : ways_to_cut(2)) {
    if (way.mode != ExecutionMode::lazy) continue;  // others name what fits until they record more
    CAPTURE(way.summary());
    const auto named_by = [&](Bytes budget, const auto& call) {
      ExecutionStrategy strategy = way;
      strategy.run.memory_budget = budget;
      try {
        call(strategy);
      } catch (const BudgetError& error) {
        return error.smallest_feasible();
      }
      return Bytes{0};
    };
    const auto gradients = [&](const ExecutionStrategy& strategy) {
      const Found found = run(model, strategy);
      CHECK(difference(found, expected) < 1e-12);
    };
    const auto forecast = [&](const ExecutionStrategy& strategy) {
      estimate(strategy, {model.loss, model.parameters, model.batch});
    };
    const Bytes named = named_by(1, gradients);
    CHECK(named >= of_wide);
    CHECK(named_by(1, forecast) == named);
    CHECK(named_by(named - 1, gradients) == named);
    CHECK(named_by(named, gradients) == 0);
    CHECK(named_by(named, forecast) == 0);
  }
}

TEST_CASE("counted means: a budget that is named is enough for a model that was not checked") {
  const SmallModel model = tokens({5, 1, 0, 3}, false);
  const auto loss = [](std::int64_t counted, std::int64_t summed) {
    return [=](Tape&, std::span<const Var> p, std::span<const Var> b) {
      const auto wide = [](const Var& x, std::int64_t elements) {
        return sum(cumsum(broadcast_to(x, {elements}), 0));
      };
      const Var sum_of_targets = sum(square(matmul(b[0], p[0])));
      return weighted_mean(wide(sum_of_targets, summed), wide(sum(square(b[0])), counted)) +
             sum(square(p[1]));
    };
  };
  ExecutionStrategy strategy{.accumulation = 2, .run = {.memory_budget = 16000}};
  Execution execution(strategy);
  execution.gradients(loss(10, 10), model.parameters, model.batch);
  const auto larger = loss(3000, 6000);
  try {
    execution.gradients(larger, model.parameters, model.batch);
    FAIL("no refusal");
  } catch (const BudgetError& error) {
    strategy.run.memory_budget = error.smallest_feasible();
  }
  CHECK_NOTHROW(Execution(strategy).gradients(larger, model.parameters, model.batch));
}

TEST_CASE("counted means: a part that cannot be counted is refused after others were counted") {
  SmallModel model = tokens({5, 1, 0, 3}, false);
  std::int64_t most = 10;
  model.loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    const std::int64_t elements = tape.part() == 0 ? 10 : most;
    const Var wide = cumsum(broadcast_to(sum(square(b[0])), {elements}), 0);
    return weighted_mean(sum(square(matmul(b[0], p[0]))), sum(wide)) + sum(square(p[1]));
  };
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    CAPTURE(name_of(mode));
    ExecutionStrategy strategy{.mode = mode, .accumulation = 2, .run = {.memory_budget = 16000}};
    Execution execution(strategy);
    most = 10;
    CHECK_NOTHROW(execution.gradients(model.loss, model.parameters, model.batch));
    most = 3000;
    for (int again = 0; again < 2; ++again) {
      try {
        execution.gradients(model.loss, model.parameters, model.batch);
        FAIL("no refusal");
      } catch (const BudgetError& error) {
        CHECK(error.smallest_feasible() >= 24000);
        strategy.run.memory_budget = error.smallest_feasible();
      }
    }
    if (mode == ExecutionMode::lazy) CHECK_NOTHROW(run(model, strategy));
  }
}

}  // namespace
}  // namespace palimpsest::counted_budgets_test
