#include <optional>

#include "tests/strategy/mpi/model.h"
#include "tests/strategy/mpi/ranks.h"

namespace palimpsest::resume_test {
namespace {

using Catch::Matchers::Contains;

/// Five steps with dropout. In the middle, `between` may replace the execution.
template <class F>
Found five_steps(const ExecutionStrategy& strategy, const DistributedOptions& options, F between) {
  Model model(DType::f32, 13, 4);
  model.dropped = 0.3;
  std::optional<DistributedExecution> execution(std::in_place, world(), strategy, options);
  Found found;
  for (int step = 0; step < 5; ++step) {
    if (step == 3) between(execution);
    found = Found(execution->gradients(model.loss(), model.parameters, model.batch));
  }
  return found;
}

}  // namespace

TEST_CASE("a distributed run that was stopped goes on with the same bits") {
  const ExecutionStrategy strategies[] = {
      {},
      {.accumulation = 2},
      {.mode = ExecutionMode::eager},
      {.precision = Precision{PrecisionKind::mixed, DType::f16}},
      {.accumulation = 3, .parallelism = ParallelMode::pipeline}};
  for (const ExecutionStrategy& strategy : strategies) {
    for (const bool deterministic : {true, false}) {
      CAPTURE(strategy.summary(), deterministic);
      DistributedOptions options{.deterministic = deterministic};
      if (strategy.parallelism != ParallelMode::pipeline) options.bucket_bytes = 500;
      const Found expected =
          five_steps(strategy, options, [](std::optional<DistributedExecution>&) {});
      const auto killed = [&](std::optional<DistributedExecution>& execution) {
        const NamedTensors state = execution->state();
        execution.emplace(world(), strategy, options);
        execution->load_state(state);
        for (const auto& [name, tensor] : execution->state()) {
          CHECK(same_bits(tensor, state.at(name)));
        }
        CHECK(execution->state().size() == state.size());
      };
      const Found found = five_steps(strategy, options, killed);
      CHECK(same(found, expected));
      // Without the state, dropout repeats its numbers.
      const auto forgotten = [&](std::optional<DistributedExecution>& execution) {
        execution.emplace(world(), strategy, options);
      };
      CHECK_FALSE(same(five_steps(strategy, options, forgotten), expected));
    }
  }
}

TEST_CASE("a stop that one rank requests ends the step of all") {
  const Model model(DType::f32, 12, 6);
  for (const ParallelMode parallelism : {ParallelMode::automatic, ParallelMode::pipeline}) {
    std::stop_source source;
    ExecutionStrategy strategy{.accumulation = 2, .parallelism = parallelism};
    if (world().rank() == 0) {
      strategy.run.stop = source.get_token();
      strategy.run.progress = on_progress([&](const RunProgress& progress) {
        if (progress.steps_done >= 1) source.request_stop();
      });
    }
    DistributedExecution execution(world(), strategy);
    const Failure failure =
        failure_of([&] { execution.gradients(model.loss(), model.parameters, model.batch); });
    CHECK_THAT(failure.own + failure.of_other, Contains("[run] stopped"));
    CHECK(failure.own.empty() == (world().rank() != 0));
  }
}

TEST_CASE("a state that does not fit is refused, and nothing changes") {
  DistributedExecution execution(world(),
                                 {.precision = Precision{PrecisionKind::mixed, DType::f16}});
  const NamedTensors before = execution.state();
  CHECK(before.contains("scaler/scale"));
  const auto refused = [&](const std::string& name, const Tensor& tensor,
                           const std::string& words) {
    NamedTensors state = before;
    state[name] = tensor;
    CHECK_THROWS_WITH(execution.check_state(state), Contains(words));
    CHECK_THROWS_WITH(execution.load_state(state), Contains(words));
  };
  refused("steps", Tensor::from({std::int64_t{-1}}, {}), "'steps' of the state is -1");
  refused("steps", Tensor::from({std::int64_t{1} << 40}, {}), "'steps' of the state is");
  refused("steps", Tensor::scalar(1), "must be i64");
  refused("gradient_order", Tensor::from({std::int64_t{0}, std::int64_t{0}}, {2}),
          "has no place for parameter 1");
  refused("speed", Tensor::scalar(1), "'speed' of the state is unknown");
  NamedTensors without = before;
  without.erase("steps");
  CHECK_THROWS_WITH(execution.load_state(without), Contains("missing"));
  CHECK(execution.state().size() == before.size());
}

TEST_CASE("a state of another model, or of another rank's step, ends the step of all") {
  const Model model(DType::f32, 13, 4);
  if (world().size() == 1) return;
  {
    DistributedExecution execution(world());
    NamedTensors state = execution.state();
    state["gradient_order"] = Tensor::from({std::int64_t{1}, std::int64_t{0}}, {2});
    execution.load_state(state);
    const Failure failure =
        failure_of([&] { execution.gradients(model.loss(), model.parameters, model.batch); });
    CHECK_THAT(failure.own, Contains("that of 2 parameters, but the step has 8"));
  }
  DistributedExecution execution(world());
  NamedTensors state = execution.state();
  if (world().rank() == 1) state["steps"] = Tensor::from({std::int64_t{7}}, {});
  execution.load_state(state);
  const Failure failure =
      failure_of([&] { execution.gradients(model.loss(), model.parameters, model.batch); });
  CHECK(failure.rank == 1);
  CHECK_THAT(failure.of_other, Contains("step 8") && Contains("step 1"));
}

}  // namespace palimpsest::resume_test
