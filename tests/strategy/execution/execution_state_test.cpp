#include <vector>

#include "palimpsest.h"
#include "strategy/training/training_parts.h"
#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace palimpsest::execution_state_test {
namespace {

using Catch::Matchers::Contains;

const ModelFunction noisy_loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
  return mean(square(dropout(tanh(matmul(b[0], p[0])), 0.4)));
};
const ModelFunction noisy_value = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
  return dropout(matmul(b[0], p[0]), 0.4);
};

struct Step {
  const std::vector<Tensor> parameters{Tensor::uniform({6, 5}, 1, -1, 1)};
  const std::vector<Tensor> batch{Tensor::uniform({8, 6}, 2, -1, 1)};

  /// A gradient and two values.
  std::vector<Tensor> run(Execution& execution) const {
    const Gradients gradients = execution.gradients(noisy_loss, parameters, batch);
    std::vector<Tensor> made{gradients.entries()[0].gradient.clone()};
    for (int i = 0; i < 2; ++i) made.push_back(execution.value(noisy_value, parameters, batch));
    return made;
  }
};

TEST_CASE("execution: a resumed execution draws the numbers of one that went on") {
  const Step step;
  const Precision f16{.half = DType::f16};
  const ExecutionStrategy strategies[] = {
      {},
      {.mode = ExecutionMode::eager, .accumulation = 2},
      {.precision = f16},
      {.accumulation = 4, .parallelism = ParallelMode::pipeline, .stages = 2},
  };
  const TemporaryFile file;
  for (const ExecutionStrategy& strategy : strategies) {
    Execution whole(strategy);
    const std::vector<Tensor> first = step.run(whole);
    save_training(file.path(), {{"execution", whole}});
    Execution resumed(strategy);
    load_training(file.path(), {{"execution", resumed}});
    const std::vector<Tensor> expected = step.run(whole);
    const std::vector<Tensor> found = step.run(resumed);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(same_bits(found[i], expected[i]));
      CHECK_FALSE(same_bits(found[i], first[i]));
    }
    for (const auto& [name, tensor] : whole.state()) {
      CHECK(same_bits(tensor, resumed.state().at(name)));
    }
  }
}

TEST_CASE("execution: states that do not fit are errors") {
  Execution execution;
  const NamedTensors good = execution.state();
  Execution scaled({.precision = Precision{.half = DType::f16}});
  CHECK_THROWS_WITH(scaled.load_state(good), Contains("'scale' of the state is missing"));
  CHECK_THROWS_WITH(execution.load_state(scaled.state()),
                    Contains("'scaler/growths' of the state is unknown"));
  NamedTensors state = good;
  state.erase("value_calls");
  CHECK_THROWS_WITH(execution.load_state(state), Contains("'value_calls'"));
  state.emplace("value_calls", Tensor::from({std::int64_t{1} << 40}, {}));
  CHECK_THROWS_AS(execution.check_state(state), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::execution_state_test
