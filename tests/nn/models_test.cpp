#include <cmath>
#include <functional>

#include "nn/nn.h"
#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::models_test {
namespace {

using Catch::Matchers::Contains;

/// A convolution, batch norm, dropout and a head.
struct Model {
  explicit Model(nn::Parameters p)
      : parameters(p),
        convolution(p / "convolution", 1, 4, 3, {.convolution = {.padding = 1}}),
        norm(p / "norm", 4),
        drop(p, 0.25),
        head(p / "head", 4, 3) {}

  Var features(const Var& x) const { return relu(norm(convolution(x))); }
  Var classify(const Var& y) const { return head(drop(reshape(global_average_pool(y), {-1, 4}))); }
  Var operator()(const Var& x) const { return classify(features(x)); }

  nn::Parameters parameters;
  nn::Conv2d convolution;
  nn::BatchNormLayer norm;
  nn::Dropout drop;
  nn::Linear head;
};

struct Batch {
  Tensor images = Tensor::normal({6, 1, 5, 5}, 11);
  Tensor labels = Tensor::from<std::int64_t>({0, 1, 2, 2, 1, 0}, {6});
};

/// The weights and states after some steps, each recorded and differentiated by `step`.
NamedTensors trained(const std::function<Gradients(const Model&, const Batch&)>& step,
                     int steps = 3) {
  const Model model(nn::Parameters(9));
  const Batch batch;
  const auto optimizer = sgd({.learning_rate = 0.1, .momentum = 0.9});
  for (int i = 0; i < steps; ++i) optimizer->step(step(model, batch));
  return model.parameters.named();
}

void check_same(const NamedTensors& a, const NamedTensors& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, tensor] : a) {
    INFO(name);
    CHECK(same_bits(tensor, b.at(name)));
  }
}

Var loss_of(const Model& model, Tape& tape, const Batch& batch) {
  return cross_entropy(model(tape.constant(batch.images)), tape.constant(batch.labels));
}

}  // namespace

TEST_CASE("a model runs unchanged in every mode, with the same bits and running statistics") {
  Tape plain;
  const NamedTensors expected = trained([&](const Model& model, const Batch& batch) {
    plain.clear();
    return backward(loss_of(model, plain, batch));
  });
  CHECK(expected.at("norm/running_mean").at(0) != 0);

  SECTION("within the smallest budget") {
    Tape tape;
    check_same(expected, trained([&](const Model& model, const Batch& batch) {
                 tape.clear();
                 const Var loss = loss_of(model, tape, batch);
                 try {
                   return backward(loss, {.memory_budget = 1});
                 } catch (const BudgetError& error) {
                   return backward(loss, {.memory_budget = error.smallest_feasible()});
                 }
               }));
  }
  SECTION("eager and hybrid") {
    for (const std::shared_ptr<Evaluator>& evaluator :
         std::vector<std::shared_ptr<Evaluator>>{eager(), hybrid({}, {.nodes = 4})}) {
      Tape tape(evaluator);
      check_same(expected, trained([&](const Model& model, const Batch& batch) {
                   tape.clear();
                   return backward(loss_of(model, tape, batch));
                 }));
    }
  }
  SECTION("checkpoint") {
    Tape tape;
    check_same(expected, trained([&](const Model& model, const Batch& batch) {
                 tape.clear();
                 model.parameters.record(tape);
                 const Var x = checkpoint([&](const Var& y) { return model.features(y); },
                                          tape.constant(batch.images));
                 return backward(cross_entropy(model.classify(x), tape.constant(batch.labels)));
               }));
  }
}

TEST_CASE("a program of a model updates weights and running statistics") {
  const auto train = [](bool by_program) {
    nn::Parameters parameters(9);
    const Model model(parameters);
    const Batch batch;
    const auto optimizer = sgd({.learning_rate = 0.1});
    Tape tape;
    Runner runner(Program::gradients([&](Tape& own) { return loss_of(model, own, batch); }));
    for (int i = 0; i < 3; ++i) {
      if (by_program) {
        runner.run();
        optimizer->step(runner.gradients());
      } else {
        optimizer->step(backward(loss_of(model, tape, batch)));
        tape.clear();
      }
    }
    return parameters.named();
  };
  check_same(train(true), train(false));
}

TEST_CASE("a model runs in an execution, in one part or several") {
  const auto train = [](const ExecutionStrategy& strategy) {
    nn::Parameters parameters(9);
    const Model model(parameters);
    const Batch batch;
    const ModelFunction loss = [&](Tape&, std::span<const Var>, std::span<const Var> b) {
      return cross_entropy(model(b[0]), b[1]);
    };
    const std::vector<Tensor> tensors{batch.images, batch.labels};
    Execution execution(strategy);
    const auto optimizer = sgd({.learning_rate = 0.1});
    for (int i = 0; i < 3; ++i) {
      const Gradients gradients = execution.gradients(loss, parameters.tensors(), tensors);
      CHECK(gradients.entries()[0].name == "convolution/bias");
      optimizer->step(gradients);
    }
    return parameters.named();
  };
  const NamedTensors whole = train({});
  check_same(whole, train({.mode = ExecutionMode::eager}));
  check_same(whole, train({.mode = ExecutionMode::hybrid}));
  const NamedTensors cut = train({.accumulation = 3});
  check_same(
      cut,
      train({.parallelism = ParallelMode::data_parallel, .workers = 3, .run = {.threads = 3}}));
  CHECK(cut.at("norm/running_var").at(0) != 1);
}

TEST_CASE("layers without statistics run in a layer checkpointer and in loops") {
  nn::Parameters parameters(2);
  std::vector<nn::Sequential<nn::LayerNorm, nn::Linear>> layers;
  LayerModel model;
  for (int i = 0; i < 4; ++i) {
    nn::Parameters own = parameters / ("layer" + std::to_string(i));
    layers.emplace_back(nn::LayerNorm(own / "norm", 3), nn::Linear(own / "linear", 3, 3));
    model.layer.parameters.push_back(own.tensors());
  }
  model.layer.forward = [&](const Var& x, std::span<const Var>, int layer) {
    return x + layers[static_cast<std::size_t>(layer)](x);
  };
  const Tensor input = Tensor::normal({2, 3}, 1);
  LayerCheckpointer checkpointer(model, {.mode = LayerCheckpointing::Mode::every, .interval = 2});
  checkpointer.forward(input);
  const LayerGradients found = checkpointer.backward([](const Var& y) { return sum(square(y)); });
  Tape tape;
  parameters.record(tape);
  Var x = tape.constant(input);
  for (const auto& layer : layers) x = x + layer(x);
  const Gradients expected = backward(sum(square(x)));
  for (std::size_t i = 0; i < expected.entries().size(); ++i) {
    CHECK(same_bits(found.parameters.entries()[i].gradient, expected.entries()[i].gradient));
  }
  CHECK(checkpointer.forecast(input.type()).compute_factor >= 1);

  Tape looping;
  parameters.record(looping);
  const Var last = scan(looping.constant(input), 3,
                        [&](const Var& y, const StepNumber&) { return tanh(layers[0](y)); });
  Tape unrolled;
  Var y = unrolled.constant(input);
  for (int i = 0; i < 3; ++i) y = tanh(layers[0](y));
  const Gradients of_loop = backward(sum(last));
  const Gradients of_steps = backward(sum(y));
  for (const Gradients::Entry& entry : of_steps) {
    const auto entries = of_loop.entries();
    const auto same = std::ranges::find(entries, entry.name, &Gradients::Entry::name);
    REQUIRE(same != entries.end());
    REQUIRE(entry.gradient.shape() == same->gradient.shape());
    for (std::int64_t i = 0; i < entry.gradient.elements(); ++i) {
      CHECK(std::abs(entry.gradient.at(i) - same->gradient.at(i)) < 1e-4);
    }
  }
}

TEST_CASE("statistics in loops are errors that say so") {
  nn::Parameters parameters(2);
  const nn::BatchNormLayer norm(parameters, 3);
  Tape tape;
  parameters.record(tape);
  const Var x = tape.constant(Tensor::normal({2, 3}, 1));
  CHECK_THROWS_WITH(scan(x, 3, [&](const Var& y, const StepNumber&) { return norm(y); }),
                    Contains("running statistics"));
}

TEST_CASE("a layer that is recorded first in a loop body is an error that names the remedy") {
  nn::Parameters parameters(2);
  const nn::Linear layer(parameters, 3, 3);
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2, 3}));
  const auto in_scan = [&] {
    return scan(x, 2, [&](const Var& y, const StepNumber&) { return layer(y); });
  };
  const auto in_while = [&] {
    return while_loop(
        x, [](const Var& y) { return sum(y) < 10.0; },
        [&](const Var& y, const StepNumber&) { return layer(y); });
  };
  CHECK_THROWS_WITH(in_scan(), Contains("weight") && Contains("parameters.record(tape)"));
  CHECK_THROWS_WITH(in_while(), Contains("weight") && Contains("parameters.record(tape)"));
  parameters.record(tape);
  CHECK(in_scan().shape() == Shape{2, 3});
}

TEST_CASE("a trainable parameter that checkpoint meets first is an error") {
  nn::Parameters parameters(2);
  const nn::Linear layer(parameters, 3, 3);
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2, 3}));
  CHECK_THROWS_WITH(
      checkpoint([&](const Var& y) { return layer(y); }, x),
      Contains("weight") && Contains("record it before") && Contains("parameters.record(tape)"));
  parameters.record(tape);
  CHECK(checkpoint([&](const Var& y) { return layer(y); }, x).shape() == Shape{2, 3});
}

}  // namespace palimpsest::models_test
