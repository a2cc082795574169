// Parts of a batch that a model treats differently.
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/execution/runs.h"

namespace palimpsest::part_differences_test {
namespace {

using Catch::Matchers::Contains;

std::vector<ExecutionStrategy> strategies_with_parts() {
  std::vector<ExecutionStrategy> list{{.accumulation = 2}, {}, {}, {}};
  list[1].parallelism = ParallelMode::data_parallel;
  list[1].workers = 2;
  list[2].parallelism = ParallelMode::pipeline;
  list[2].stages = 2;
  list[2].accumulation = 2;
  list[3].mode = ExecutionMode::eager;
  list[3].accumulation = 2;
  return list;
}

/// The error of a step in which `record` makes the outputs of each part.
std::string error_of_step(
    const ExecutionStrategy& strategy,
    const std::function<LossAndOutputs(const Var& mean, const Var& x)>& record) {
  const std::vector<Tensor> parameters{Tensor::ones({3})};
  const std::vector<Tensor> batch{Tensor::ones({40, 3})};
  Execution execution(strategy);
  const auto model = [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return record(mean(tanh(b[0] * p[0])), b[0]);
  };
  return error_of([&] { execution.gradients(model, parameters, batch); });
}

TEST_CASE("execution: outputs of parts whose dtypes differ are refused") {
  for (const ExecutionStrategy& strategy : strategies_with_parts()) {
    INFO(strategy.summary());
    const std::string error = error_of_step(strategy, [](const Var& loss, const Var& x) {
      return LossAndOutputs{loss, {x.tape().part() == 1 ? cast(x, DType::f64) : x}};
    });
    CHECK_THAT(error, Contains("[execution] the model returns f32 (20, 3) and f64 (20, 3)"));
    CHECK_THAT(error, Contains("cast the values of all parts to one dtype"));
  }
}

TEST_CASE("execution: parts update the same tensors, in one order and by one weight") {
  const Tensor one = Tensor::zeros({});
  const Tensor other = Tensor::zeros({});
  using Update = std::pair<const Tensor*, double>;
  struct Row {
    const char* what;
    std::vector<Update> of_first, of_second;
    bool fits;
  };
  const std::vector<Row> rows{
      {"equal", {{&one, 1}, {&other, 0.5}}, {{&one, 1}, {&other, 0.5}}, true},
      {"another tensor", {{&one, 1}}, {{&other, 1}}, false},
      {"another order", {{&one, 1}, {&other, 1}}, {{&other, 1}, {&one, 1}}, false},
      {"another weight", {{&one, 1}}, {{&one, 0.5}}, false},
      {"an output in place of an update", {{&one, 1}}, {}, false},
  };
  for (const ExecutionStrategy& strategy : strategies_with_parts()) {
    INFO(strategy.summary());
    for (const Row& row : rows) {
      INFO(row.what);
      for (const Tensor& each : {one, other}) each.data<float>()[0] = 0;
      const std::string error = error_of_step(strategy, [&](const Var& loss, const Var& x) {
        Tape& tape = x.tape();
        const std::vector<Update>& own = tape.part() == 0 ? row.of_first : row.of_second;
        for (const auto& [target, weight] : own) {
          tape.update_after_run(*target, mean(x) + tape.part(), weight);
        }
        std::vector<Var> outputs(row.of_first.size() - own.size() + 1, x);
        return LossAndOutputs{loss, outputs};
      });
      if (row.fits) {
        CHECK(error.empty());
        CHECK(one.item() == 1.5);
        CHECK(other.item() == 0.75);
      } else {
        CHECK_THAT(error, Contains("[execution] parts of a batch"));
        CHECK(one.item() == 0);
        CHECK(other.item() == 0);
      }
    }
  }
}

TEST_CASE("execution: parts of a model without parameters have a loss and outputs") {
  const Tensor x = Tensor::uniform({7, 3}, 5, 0, 1, DType::f64);
  const ModelFunction model = [](Tape&, std::span<const Var>, std::span<const Var> b) {
    return LossAndOutputs{mean(b[0]), {b[0] * 2.0}};
  };
  for (const ExecutionStrategy& strategy : strategies_with_parts()) {
    INFO(strategy.summary());
    Execution execution(strategy);
    const Gradients gradients = execution.gradients(model, std::vector<Tensor>{}, std::vector{x});
    CHECK(gradients.entries().empty());
    CHECK_THAT(gradients.loss().item(), Catch::Matchers::WithinAbs(mean(x).item(), 1e-15));
    CHECK(same_bits(gradients.outputs()[0], x * 2.0));
  }
}

TEST_CASE("execution: a call inside a call is refused, and the outer one goes on") {
  for (const ExecutionStrategy& strategy : strategies_with_parts()) {
    INFO(strategy.summary());
    const std::vector<Tensor> parameters{Tensor::ones({3})};
    const std::vector<Tensor> batch{Tensor::ones({40, 3})};
    Execution execution(strategy);
    std::vector<std::string> errors(2);
    bool is_inner = true;
    const ModelFunction model = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
      if (std::exchange(is_inner, true) == false) {
        errors[0] = error_of([&] { execution.gradients(model, parameters, batch); });
        errors[1] = error_of([&] { execution.value(model, parameters, batch); });
      }
      static_cast<void>(tape);
      return LossAndOutputs{mean(tanh(b[0] * p[0]))};
    };
    const double expected = execution.gradients(model, parameters, batch).loss().item();
    is_inner = false;
    CHECK(execution.gradients(model, parameters, batch).loss().item() == expected);
    for (const std::string& error : errors) {
      CHECK_THAT(error, Contains("the Execution is in use: a call of it is in progress"));
    }
  }
}

}  // namespace
}  // namespace palimpsest::part_differences_test
