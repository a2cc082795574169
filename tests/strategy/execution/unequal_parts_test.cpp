// Batches whose parts differ in size by one example.
#include <oneapi/tbb/global_control.h>

#include "tests/strategy/execution/runs.h"

namespace palimpsest::unequal_parts_test {
namespace {

struct FourThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

/// A model with an operation that counts its calls.
struct Counted {
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  CustomOperation cube{
      {.name = "cube",
       .forward =
           [calls = calls](const CustomCall& call) {
             ++*calls;
             const auto x = call.inputs[0].data<float>();
             const auto y = call.outputs[0].data<float>();
             for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i] * x[i];
           },
       .vjp = [](const Pullback& p) { p.set(0, p.adjoint(0) * 3.0 * square(p.input(0))); }}};
  ModelFunction loss = [this](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Var x = b[0] + tanh(matmul(b[0], p[0]));
    const Var y = x + 0.1 * cube({tanh(matmul(x, p[1]))});
    return mean(y * y);
  };
  std::vector<Tensor> parameters{Tensor::normal({12, 12}, 1), Tensor::normal({12, 12}, 2)};
};

TEST_CASE_METHOD(FourThreads, "unequal parts: the first budget that is named is enough") {
  const auto ways = [](int parts) {
    std::vector<ExecutionStrategy> list{{.accumulation = parts}};
    ExecutionStrategy& replicas = list.emplace_back();
    replicas.parallelism = ParallelMode::data_parallel;
    replicas.workers = parts;
    ExecutionStrategy& both = list.emplace_back(replicas);
    both.workers = 2;
    both.accumulation = 2;
    list.push_back(pipeline_of(2, parts));
    for (ExecutionStrategy& each : list) each.run.threads = 1;
    return list;
  };
  for (const std::int64_t examples : {7, 10}) {
    const std::vector<Tensor> batch{Tensor::normal({examples, 12}, 3)};
    for (const int parts : {2, 3}) {
      for (ExecutionStrategy strategy : ways(parts)) {
        CAPTURE(examples, strategy.summary());
        Counted model;
        const auto smallest = [&](auto f) {
          strategy.run.memory_budget = 1;
          try {
            f();
          } catch (const BudgetError& error) {
            return error.smallest_feasible();
          }
          return Bytes{0};
        };
        const Bytes named =
            smallest([&] { Execution(strategy).gradients(model.loss, model.parameters, batch); });
        CHECK(*model.calls == 0);
        const Workload workload{model.loss, model.parameters, batch};
        CHECK(smallest([&] { estimate(strategy, workload); }) == named);
        strategy.run.memory_budget = named;
        Execution execution(strategy);
        const Report report = execution.gradients(model.loss, model.parameters, batch).report();
        CHECK(report.predicted_peak <= named);
        CHECK(estimate(strategy, workload).peak <= named);
        // One byte less is refused before any part is computed.
        *model.calls = 0;
        strategy.run.memory_budget = named - 1;
        try {
          Execution(strategy).gradients(model.loss, model.parameters, batch);
        } catch (const BudgetError&) {
          CHECK(*model.calls == 0);
        }
      }
    }
  }
}

TEST_CASE("unequal parts: an estimate is that of the part that takes most") {
  const std::vector<Tensor> batch{Tensor::normal({7, 12}, 3)};
  const Counted model;
  for (const int parts : {2, 3}) {
    ExecutionStrategy strategy{.accumulation = parts, .run = {.threads = 1}};
    Execution execution(strategy);
    const Report report = execution.gradients(model.loss, model.parameters, batch).report();
    CHECK(estimate(strategy, {model.loss, model.parameters, batch}).peak == report.predicted_peak);
  }
}

TEST_CASE("unequal parts: devices name a budget that is enough for each part") {
  const std::vector<Tensor> batch{Tensor::normal({7, 12}, 3)};
  Counted model;
  ExecutionStrategy strategy{.accumulation = 2, .run = {.memory_budget = 1}};
  strategy.parallelism = ParallelMode::model_parallel;
  strategy.devices.resize(2);
  Bytes named = 0;
  try {
    Execution(strategy).gradients(model.loss, model.parameters, batch);
  } catch (const BudgetError& error) {
    named = error.smallest_feasible();
  }
  CHECK(*model.calls == 0);
  strategy.run.memory_budget = named;
  CHECK_NOTHROW(Execution(strategy).gradients(model.loss, model.parameters, batch));
}

}  // namespace
}  // namespace palimpsest::unequal_parts_test
