#include "strategy/execution/choice/memory_forecast.h"

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/execution/models.h"

namespace palimpsest::memory_forecast_test {
namespace {

using Catch::Matchers::Contains;

Bytes bytes_of(const std::vector<Tensor>& tensors) {
  Bytes sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.bytes();
  return sum;
}

}  // namespace

TEST_CASE("a memory forecast adds what a training program holds") {
  const SmallModel model = heat();
  const Workload workload{model.loss, model.parameters, model.batch};
  for (const ExecutionStrategy& strategy :
       {ExecutionStrategy{}, ExecutionStrategy{.accumulation = 3}}) {
    const auto optimizer = adamw();
    const MemoryForecast forecast = forecast_memory(strategy, workload, optimizer.get());
    CHECK(forecast.parameters == bytes_of(model.parameters));
    CHECK(forecast.batch == bytes_of(model.batch));
    Execution execution(strategy);
    const Gradients gradients = execution.gradients(model.loss, model.parameters, model.batch);
    CHECK(forecast.step == gradients.report().predicted_peak);
    CHECK(forecast.metadata >= gradients.report().tape_metadata);
    optimizer->step(gradients);
    Bytes state = 0;  // of the parameters, without the counts of the optimizer
    for (const auto& [name, tensor] : optimizer->state()) {
      if (tensor.shape().rank() > 0) state += tensor.bytes();
    }
    CHECK(forecast.optimizer_state == state);
    CHECK(forecast.total() == forecast.parameters + forecast.batch + forecast.optimizer_state +
                                  forecast.step + forecast.metadata);
  }
}

TEST_CASE("a forecast without an optimizer, of values, and within a budget") {
  const SmallModel model = heat();
  Workload workload{model.loss, model.parameters, model.batch};
  const MemoryForecast training = forecast_memory({}, workload);
  CHECK(training.optimizer_state == 0);
  CHECK(forecast_memory({}, workload, sgd().get()).optimizer_state == 0);
  const Bytes budget = training.step * 3 / 4;
  CHECK(forecast_memory({.run = {.memory_budget = budget}}, workload).step <= budget);
  CHECK_THROWS_AS(forecast_memory({.run = {.memory_budget = 1}}, workload), BudgetError);
  workload.training = false;
  const MemoryForecast inference = forecast_memory({.gradient = GradientMode::none}, workload);
  CHECK(inference.step < training.step);
  CHECK(inference.metadata < training.metadata);
  CHECK_THAT(training.summary(), Contains("optimizer state  0 B\n") && Contains("total"));
}

}  // namespace palimpsest::memory_forecast_test
