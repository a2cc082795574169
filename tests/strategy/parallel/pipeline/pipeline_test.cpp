#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/strategy/execution/runs.h"

namespace palimpsest::pipeline_test {
namespace {

using Catch::Matchers::Contains;

struct SomeThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

std::vector<SmallModel> models() {
  return {perceptron(), small_transformer(), heat(), with_dropout(), recurrent()};
}

TEST_CASE_METHOD(SomeThreads, "pipelines: the bits of micro-batches one after the other") {
  for (const SmallModel& model : models()) {
    for (const int micro_batches : {1, 2, 4, 6}) {
      const Found expected = run(model, {.accumulation = micro_batches}, 3);
      for (int stages = 1; stages <= 4; ++stages) {
        for (const int threads : {1, 2, 4}) {
          CAPTURE(model.name, micro_batches, stages, threads);
          ExecutionStrategy strategy = pipeline_of(stages, micro_batches);
          strategy.run.threads = threads;
          const Found found = run(model, strategy, 3);
          CHECK(have_same_bits(found, expected));
          CHECK(found.report.measured_peak <= found.report.predicted_peak);
          CHECK(found.report.plan_reused);
          CHECK(found.report.stages.size() == static_cast<std::size_t>(stages));
          CHECK(found.report.micro_batches == micro_batches);
        }
      }
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "pipelines: sums, uneven micro-batches and half width as without") {
  SmallModel model = perceptron();
  const auto check = [&](ExecutionStrategy strategy, LossReduction reduction) {
    const ExecutionStrategy piped = [&] {
      ExecutionStrategy with = strategy;
      with.parallelism = ParallelMode::pipeline;
      with.stages = 3;
      return with;
    }();
    CAPTURE(piped.summary());
    CHECK(have_same_bits(run(model, piped, 2, reduction), run(model, strategy, 2, reduction)));
  };
  for (const int parts : {1, 4, 5}) {  // of six examples
    check({.accumulation = parts}, LossReduction::mean);
    check({.accumulation = parts}, LossReduction::sum);
    for (const PrecisionKind kind :
         {PrecisionKind::full, PrecisionKind::half, PrecisionKind::mixed}) {
      check({.precision = Precision{kind, DType::bf16}, .accumulation = parts},
            LossReduction::mean);
    }
    check({.precision = Precision{PrecisionKind::mixed, DType::f16}, .accumulation = parts},
          LossReduction::mean);
  }
  for (Tensor& parameter : model.parameters) parameter = parameter.to(DType::bf16);
  for (Tensor& tensor : model.batch) tensor = tensor.to(DType::bf16);
  check({.accumulation = 3}, LossReduction::mean);
}

TEST_CASE_METHOD(SomeThreads, "pipelines: every way of computing gradients has the same bits") {
  for (const SmallModel& model : models()) {
    const Found expected = run(model, {.accumulation = 3});
    std::vector<ExecutionStrategy> strategies(6, pipeline_of(3, 3));
    strategies[0].gradient = GradientMode::full;
    for (std::size_t i = 1; i < 4; ++i) strategies[i].gradient = GradientMode::checkpointed;
    strategies[1].checkpoint_interval = 2;
    strategies[2].checkpoint_fraction = 0.3;
    strategies[3].checkpoint_planner = "square_root";
    strategies[4].run.fuse = false;
    strategies[5].run.anomaly = true;
    for (const ExecutionStrategy& strategy : strategies) {
      CAPTURE(model.name, strategy.summary());
      const Found found = run(model, strategy);
      CHECK(have_same_bits(found, expected));
      const bool again = strategy.gradient == GradientMode::checkpointed;
      for (const Report::Stage& stage : found.report.stages) CHECK(stage.computes_again == again);
      CHECK((found.report.recomputed > 0) == again);
      CHECK((found.report.compute_overhead > 0) == again);
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "pipelines: values are those of parts of the batch") {
  const SmallModel model = perceptron();
  const ModelFunction output = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    return matmul(dropout(tanh(matmul(batch[0], p[0]) + p[1]), 0.3), p[2]);
  };
  Execution shards({.parallelism = ParallelMode::data_parallel, .workers = 3});
  std::vector<Tensor> expected;
  for (int step = 0; step < 3; ++step) {
    expected.push_back(shards.value(output, model.parameters, model.batch));
  }
  for (const GradientMode gradient : {GradientMode::none, GradientMode::automatic}) {
    ExecutionStrategy strategy = pipeline_of(2, 3);
    strategy.gradient = gradient;
    Execution execution(strategy);
    for (int step = 0; step < 3; ++step) {
      const Tensor found = execution.value(output, model.parameters, model.batch);
      CHECK(same_bits(found, expected[static_cast<std::size_t>(step)]));
      CHECK(execution.report().stages.size() == 2);
      CHECK(execution.report().plan_reused == (step > 0));
      CHECK(execution.report().measured_peak <= execution.report().predicted_peak);
      CHECK(execution.report().timeline.size() == 6);
    }
  }
  // Computing values between gradients does not change the gradients.
  const Found alone = run(model, pipeline_of(2, 3), 2);
  Execution mixed(pipeline_of(2, 3));
  mixed.gradients(model.loss, model.parameters, model.batch);
  mixed.value(output, model.parameters, model.batch);
  const Gradients found = mixed.gradients(model.loss, model.parameters, model.batch);
  CHECK(same_bits(found.entries()[0].gradient, alone.gradients[0]));
}

TEST_CASE_METHOD(SomeThreads, "pipelines: models that differ from micro-batch to micro-batch") {
  // The graph depends on the number of examples and on a count, so the cuts differ too.
  int recorded = 0;
  SmallModel model = perceptron();
  model.loss = [&](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    Var y = tanh(matmul(batch[0], p[0]) + p[1]);
    for (std::int64_t k = 0; k < 4 * batch[0].shape()[0] + recorded % 3; ++k) {
      y = sin(y + p[1] * y);
    }
    ++recorded;
    const Var error = matmul(y, p[2]) - batch[1];
    return mean(error * error);
  };
  for (const int parts : {2, 4, 6}) {
    recorded = 0;
    const Found expected = run(model, {.accumulation = parts}, 3);
    for (const int stages : {2, 3}) {
      recorded = 0;
      CAPTURE(parts, stages);
      CHECK(have_same_bits(run(model, pipeline_of(stages, parts), 3), expected));
    }
  }
}

TEST_CASE_METHOD(SomeThreads,
                 "pipelines: losses whose types differ from micro-batch to micro-batch") {
  SmallModel model = perceptron();
  model.loss = [loss = model.loss](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    const Var made = loss(tape, p, batch).loss;
    return batch[0].shape()[0] == 2 ? made : cast(made, DType::f64);
  };
  // Parts of six examples: two and one, or one and two.
  for (const int parts : {4, 5}) {
    CHECK(have_same_bits(run(model, pipeline_of(2, parts)), run(model, {.accumulation = parts})));
  }
}

TEST_CASE_METHOD(SomeThreads, "pipelines: loops, users' operations and gradients of few values") {
  SmallModel model = perceptron();
  const CustomOperation cube(
      {.name = "cube",
       .forward =
           [](const CustomCall& call) {
             const auto x = call.inputs[0].data<float>();
             const auto y = call.outputs[0].data<float>();
             for (std::size_t i = 0; i < x.size(); ++i) {
               y[i] = x[i] * x[i] * x[i];
             }
           },
       .vjp = [](const Pullback& p) { p.set(0, 3.0 * p.adjoint() * p.input() * p.input()); }});
  const auto check = [&](const ModelFunction& loss, const ExecutionStrategy& strategy) {
    model.loss = loss;
    ExecutionStrategy plain = strategy;
    plain.parallelism = ParallelMode::automatic;
    plain.stages = 0;
    CHECK(have_same_bits(run(model, strategy, 3), run(model, plain, 3)));
  };
  const ModelFunction custom = [&](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    const Var y = tanh(cube({matmul(batch[0], p[0]) + p[1]}));
    return mean(cube({matmul(y, p[2]) - batch[1]}));
  };
  const ModelFunction looping = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    const Var start = tanh(matmul(batch[0], p[0]));
    const Var end =
        scan(start, 7, [&](const Var& state, const StepNumber&) { return tanh(state + p[1]); });
    const Var error = matmul(end, p[2]) - batch[1];
    return mean(error * error);
  };
  // One parameter is unused. The gradient of another one is a value of the batch, or a constant.
  const ModelFunction sparse = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    return sum(matmul(batch[0], p[0])) + sum(p[1]) + sum(exp(sin(batch[1])));
  };
  for (const int stages : {2, 3}) {
    for (const int parts : {1, 3}) {
      CAPTURE(stages, parts);
      check(custom, pipeline_of(stages, parts));
      check(looping, pipeline_of(stages, parts));
      check(sparse, pipeline_of(stages, parts));
    }
  }
  ExecutionStrategy full = pipeline_of(2, 2);
  full.gradient = GradientMode::full;
  CHECK_THROWS_WITH(run({"loop", model.parameters, model.batch, looping}, full),
                    Contains("[pipeline] a stage recomputes a loop"));
}

TEST_CASE_METHOD(SomeThreads, "pipelines: stages work at once, each on one thing at a time") {
  std::array<std::atomic<int>, 2> calls{};
  std::array<std::atomic<int>, 2> inside{};
  std::atomic<bool> met = false;
  std::atomic<bool> twice = false;
  // A kernel that waits for the kernel of the other stage until they have met. The first call in
  // stage 0 does not wait, because no micro-batch has reached stage 1 yet.
  const auto meeting = [&](std::size_t stage) {
    const auto forward = [&, stage](const CustomCall& call) {
      if (++inside[stage] > 1) twice = true;
      const bool waits = ++calls[stage] > (stage == 0 ? 1 : 0);
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (waits && !met && std::chrono::steady_clock::now() < end) {
        if (inside[1 - stage] > 0) met = true;
        std::this_thread::yield();
      }
      std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(), call.outputs[0].raw());
      --inside[stage];
    };
    return CustomOperation({.name = "meeting", .forward = forward, .vjp = [](const Pullback& p) {
                              p.set(0, p.adjoint());
                            }});
  };
  const CustomOperation first = meeting(0);
  const CustomOperation second = meeting(1);
  SmallModel model = perceptron();
  model.loss = [&](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    const Var y = first({tanh(matmul(batch[0], p[0]) + p[1])});
    const Var error = second({matmul(y, p[2]) - batch[1]});
    return mean(error * error);
  };
  met = true;
  const Found expected = run(model, {.accumulation = 6});
  for (int step = 0; step < 5; ++step) {
    met = false;
    for (std::atomic<int>& count : calls) count = 0;
    CHECK(have_same_bits(run(model, pipeline_of(2, 6), 1), expected));
    CHECK(met);
    CHECK_FALSE(twice);
  }
}

TEST_CASE_METHOD(SomeThreads,
                 "pipelines: of fewer operations than stages some have nothing to do") {
  const SmallModel one{"one",
                       {Tensor::ones({3})},
                       {Tensor::uniform({4, 3}, 1, -1, 1)},
                       [](Tape&, auto p, auto batch) { return sum(p[0] * batch[0]); }};
  const SmallModel none{"none", {Tensor::ones({1})}, {Tensor::ones({4})}, [](Tape&, auto p, auto) {
                          return reshape(p[0], {});
                        }};
  for (const SmallModel& model : {one, none}) {
    for (const int parts : {1, 3}) {
      CAPTURE(model.name, parts);
      const Found found = run(model, pipeline_of(4, parts));
      CHECK(have_same_bits(found, run(model, {.accumulation = parts})));
      CHECK(found.report.stages.size() == 4);
      if (model.name == "one") CHECK(found.report.stages[3].predicted_peak == 0);
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "pipelines: values that cannot be put together are refused at once") {
  std::atomic<int> calls = 0;
  const CustomOperation counted({.name = "counted",
                                 .forward =
                                     [&](const CustomCall& call) {
                                       ++calls;
                                       std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(),
                                                   call.outputs[0].raw());
                                     },
                                 .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }});
  const SmallModel model = perceptron();
  ExecutionStrategy strategy = pipeline_of(2, 3);
  strategy.gradient = GradientMode::none;
  Execution execution(strategy);
  const auto scalar = [&](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    return mean(matmul(counted({batch[0]}), p[0]));
  };
  CHECK_THROWS_AS(execution.value(scalar, model.parameters, model.batch), ShapeError);
  CHECK(calls == 0);
}

TEST_CASE_METHOD(SomeThreads, "pipelines: what goes wrong names the stage, and nothing is lost") {
  SmallModel model = perceptron();
  std::atomic<int> failing = -1;
  std::atomic<int> calls = 0;
  const CustomOperation fails({.name = "fails",
                               .forward =
                                   [&](const CustomCall& call) {
                                     if (calls++ == failing) {
                                       throw ArgumentError("[fails] it does");
                                     }
                                     std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(),
                                                 call.outputs[0].raw());
                                   },
                               .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }});
  model.loss = [&](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    const Var y = tanh(matmul(batch[0], p[0]) + p[1]);
    const Var error = fails({matmul(y, p[2])}) - batch[1];
    return mean(error * error);
  };
  const Found expected = run(model, {.accumulation = 3});
  Execution execution(pipeline_of(2, 3));
  const auto attempt = [&] {
    return execution.gradients(model.loss, model.parameters, model.batch);
  };
  for (int at = 0; at < 3; ++at) {
    calls = 0;
    failing = at;
    CHECK_THROWS_WITH(attempt(), Contains("[pipeline] stage 1, forward part of micro-batch " +
                                          std::to_string(at)) &&
                                     Contains("[fails] it does"));
  }
  failing = -1;
  for (int step = 0; step < 2; ++step) {
    CHECK(same_bits(attempt().entries()[0].gradient, expected.gradients[0]));
  }
  // If a model fails while it records, its random streams continue as without stages.
  const SmallModel random = with_dropout();
  const auto fourth_of = [&](const ExecutionStrategy& strategy) {
    Execution other(strategy);
    Tensor gradient;
    for (int step = 0; step < 4; ++step) {
      int part = 0;
      const auto failing_once = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
        if (step == 1 && part++ == 1) throw std::runtime_error("once");
        return random.loss(tape, p, b);
      };
      try {
        const Gradients g = other.gradients(failing_once, random.parameters, random.batch);
        gradient = g.entries()[0].gradient.clone();
      } catch (const std::runtime_error& error) {
        CHECK(error.what() == std::string("once"));
      }
    }
    return gradient;
  };
  CHECK(same_bits(fourth_of(pipeline_of(2, 3)), fourth_of({.accumulation = 3})));

  const auto refused = [&](const ModelFunction& loss, const std::string& words) {
    CHECK_THROWS_WITH(execution.gradients(loss, model.parameters, model.batch), Contains(words));
  };
  refused([](Tape&, std::span<const Var> p,
             std::span<const Var>) { return sum(p[0]) * sum(p[1]).value().item(); },
          "[pipeline] the model reads the value of sum");
  refused([](Tape&, std::span<const Var> p, std::span<const Var>) { return exp(p[0]); },
          "backward");
  refused([](Tape&, std::span<const Var>, std::span<const Var>) { return Var(); },
          "does not return a value");
  refused(
      [](Tape& tape, std::span<const Var> p, std::span<const Var>) {
        return sum(exp(p[0])) + sum(tape.parameter(Tensor::ones({2})));
      },
      "4 parameters");
  CHECK(same_bits(attempt().entries()[0].gradient, expected.gradients[0]));
}

}  // namespace
}  // namespace palimpsest::pipeline_test
