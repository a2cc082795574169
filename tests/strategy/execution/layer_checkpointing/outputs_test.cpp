#include <functional>
#include <optional>
#include <string>

#include "nn/nn.h"
#include "tests/catch.h"
#include "tests/strategy/execution/layer_checkpointing/models.h"

namespace palimpsest::layer_outputs_test {
namespace {

using Catch::Matchers::Contains;
using Mode = LayerCheckpointing::Mode;

/// Layers with dropout that return two auxiliary outputs each and update running means.
struct Model {
  std::vector<Tensor> running{Tensor::ones({24}), Tensor::ones({24}), Tensor::ones({24}),
                              Tensor::ones({24}), Tensor::ones({24})};
  Tensor last = Tensor::zeros({8});

  LayerModel layers() const {
    LayerModel model = perceptron(5, 8);
    model.layer.forward = [this](const Var& x, std::span<const Var> w, int layer) -> LayerOutput {
      const Var hidden = dropout(tanh(matmul(x, w[0]) + w[1]), 0.2);
      const Tensor& target = running[static_cast<std::size_t>(layer)];
      x.tape().update_after_run(target, mean(hidden, {0}), 0.1);
      // Every layer also updates one tensor that all share.
      const Var output = tanh(matmul(hidden, w[2]));
      x.tape().update_after_run(last, mean(output, {0}), 0.5);
      if (layer == 3) return output;
      return {output, {hidden, sum(abs(output)), x}};
    };
    return model;
  }

  LossAndOutputs loss(const Var& output) const {
    output.tape().update_after_run(last, sum(output, {0}), 0.25);
    const Var squares = output * output;
    return {sum(squares), {squares, output, max(output)}};
  }
};

struct Found {
  std::vector<Tensor> gradients;
  std::vector<Tensor> outputs;
  std::vector<Tensor> updated;
};

/// Two steps on one tape each.
Found run_plain(const Tensor& input, std::shared_ptr<Evaluator> evaluator = nullptr) {
  const Model model;
  const LayerModel layers = model.layers();
  Found found;
  for (const std::uint64_t seed : {1, 2}) {
    Tape tape(evaluator);
    tape.set_seed(seed);
    std::vector<Var> parameters;
    Var x = tape.parameter(input);
    const Var start = x;
    std::vector<Var> outputs;
    for (int layer = 0; layer < 5; ++layer) {
      std::vector<Var> own;
      for (const Tensor& tensor : layers.layer.parameters[static_cast<std::size_t>(layer)]) {
        own.push_back(tape.parameter(tensor));
      }
      parameters.insert(parameters.end(), own.begin(), own.end());
      const LayerOutput made = layers.layer.forward(x, own, layer);
      outputs.insert(outputs.end(), made.outputs.begin(), made.outputs.end());
      x = made.output;
    }
    const LossAndOutputs loss = model.loss(x);
    outputs.insert(outputs.end(), loss.outputs.begin(), loss.outputs.end());
    const Gradients gradients = backward(LossAndOutputs(loss.loss, outputs));
    found = {};
    for (const Var& parameter : parameters) found.gradients.push_back(gradients[parameter]);
    found.gradients.push_back(gradients[start]);
    found.outputs.assign(gradients.outputs().begin(), gradients.outputs().end());
  }
  found.updated = model.running;
  found.updated.push_back(model.last);
  return found;
}

Found run_layers(const Tensor& input, const LayerCheckpointing& given, const RunOptions& options,
                 const std::optional<Precision>& precision = {}) {
  const Model model;
  LayerCheckpointer layers(model.layers(), given, options, precision);
  Found found;
  for (const std::uint64_t seed : {1, 2}) {
    layers.forward(input, seed);
    layers.activation(2);
    const auto loss = [&](const Var& output) { return model.loss(output); };
    const LayerGradients made = layers.backward(loss);
    found = {all(made), {made.parameters.outputs().begin(), made.parameters.outputs().end()}, {}};
    for (const Tensor& each : model.running) found.updated.push_back(each.clone());
    found.updated.push_back(model.last.clone());
    // Another backward pass returns the same outputs and updates nothing.
    const LayerGradients again = layers.backward(loss);
    CHECK(same_bits(again.parameters.outputs(), found.outputs));
    CHECK(same_bits(found.updated.back(), model.last));
  }
  return found;
}

const std::vector<LayerCheckpointing> configurations_to_try{
    {},
    {.mode = Mode::every, .interval = 2},
    {.mode = Mode::listed, .layers = {3}},
    {.mode = Mode::dynamic, .memory_fraction = 0.6}};

}  // namespace

TEST_CASE("layers: outputs and updates have the bits of one tape, whatever is kept") {
  const Tensor input = Tensor::uniform({6, 8}, 1, -1, 1);
  const Found expected = run_plain(input);
  REQUIRE(expected.outputs.size() == 15);
  for (const LayerCheckpointing& given : configurations_to_try) {
    CAPTURE(static_cast<int>(given.mode));
    const Found found = run_layers(input, given, {});
    CHECK(same_bits(found.gradients, expected.gradients));
    CHECK(same_bits(found.outputs, expected.outputs));
    CHECK(same_bits(found.updated, expected.updated));
  }
}

TEST_CASE("layers: outputs in mixed precision have the bits of one tape") {
  const Tensor input = Tensor::uniform({6, 8}, 1, -1, 1);
  const Precision precision{PrecisionKind::mixed, DType::bf16};
  const LayerCheckpointing every{.mode = Mode::every, .interval = 2};
  const Found kept = run_layers(input, {}, {}, precision);
  const Found found = run_layers(input, every, {}, precision);
  CHECK(same_bits(found.outputs, kept.outputs));
  CHECK(same_bits(found.updated, kept.updated));
  CHECK(found.outputs[0].dtype() == DType::f32);
}

TEST_CASE("layers: use equals the forecast with outputs and updates") {
  const Tensor input = Tensor::uniform({6, 8}, 1, -1, 1);
  for (const LayerCheckpointing& given : configurations_to_try) {
    const Model model;
    LayerCheckpointer layers(model.layers(), given);
    const LayerForecast forecast = layers.forecast(input.type());
    CHECK(same_bits(model.last, Tensor::zeros({8})));
    layers.forward(input);
    layers.backward([&](const Var& output) { return model.loss(output); });
    CHECK(layers.use() == forecast.use);
  }
}

TEST_CASE("layers: outputs count towards the budget of their run") {
  const Tensor input = Tensor::uniform({6, 8}, 1, -1, 1);
  const auto least_of = [&](const LayerModel& model) {
    LayerCheckpointer layers(model, {.mode = Mode::every, .interval = 5}, {.memory_budget = 1});
    try {
      layers.forward(input);
    } catch (const BudgetError& error) {
      return error.smallest_feasible();
    }
    return Bytes{0};
  };
  LayerModel plain = perceptron(5, 8);
  LayerModel with = plain;
  with.layer.forward = [sound = plain.layer.forward](const Var& x, std::span<const Var> w,
                                                     int layer) -> LayerOutput {
    const Var output = sound(x, w, layer).output;
    return {output, {broadcast_to(reshape(sum(output), {1}), {1000})}};
  };
  CHECK(least_of(plain) < 4000);
  CHECK(least_of(with) > 4000);
}

TEST_CASE("layers: a pass that fails updates nothing") {
  const Model model;
  const Tensor input = Tensor::uniform({6, 8}, 1, -1, 1);
  LayerCheckpointer layers(model.layers(), {.mode = Mode::every, .interval = 2});
  layers.forward(input);
  const auto foreign = [](const Var& output) -> LossAndOutputs { return {sum(output), {Var()}}; };
  CHECK_THROWS_WITH(layers.backward(foreign), Contains("the loss") && Contains("auxiliary output"));
  CHECK(same_bits(model.last, Tensor::zeros({8})));
  layers.backward([&](const Var& output) { return model.loss(output); });
  CHECK_FALSE(same_bits(model.last, Tensor::zeros({8})));
}

TEST_CASE("layers: what reads an updated tensor is not computed again from its new elements") {
  const Tensor input = Tensor::uniform({6, 8}, 1, -1, 1);
  const auto loss = [](const Var& output) { return mean(square(output)); };
  for (const LayerCheckpointing& given : configurations_to_try) {
    CAPTURE(static_cast<int>(given.mode));
    LayerModel model = perceptron(5, 8);
    const Tensor scale = Tensor::full({8}, 0.5);
    model.layer.forward = [&, plain = model.layer.forward](const Var& x, std::span<const Var> w,
                                                           int layer) -> LayerOutput {
      if (layer != 3) return plain(x, w, layer);
      const Var y = plain(x * x.tape().constant(scale, "scale"), w, layer).output;
      x.tape().update_after_run(scale, mean(y, {0}), 0.5);
      return y;
    };
    LayerCheckpointer layers(model, given);
    layers.forward(input);
    const std::vector<Tensor> first = all(layers.backward(loss));
    CHECK_THROWS_AS(layers.backward(loss), TapeError);
    CHECK_THROWS_WITH(layers.backward(loss),
                      Contains("[layers] update_after_run has changed layer3/scale") &&
                          Contains("layer 3 reads it") && Contains("call forward() again"));
    if (!layers.is_kept(4)) CHECK_THROWS_AS(layers.activation(4), TapeError);
    layers.forward(input);
    const std::vector<Tensor> second = all(layers.backward(loss));
    CHECK_FALSE(same_bits(first, second));
  }
}

TEST_CASE("layers: a constant inside a checkpoint or loop may not have changed either") {
  const Tensor input = Tensor::uniform({6, 8}, 1, -1, 1);
  const auto loss = [](const Var& output) { return mean(square(output)); };
  const std::string kinds[] = {"checkpoint", "scan", "checkpoint in scan", "scan in checkpoint"};
  for (const std::string& kind : kinds) {
    for (const bool is_precise : {false, true}) {
      for (const bool is_read : {true, false}) {
        for (const LayerCheckpointing& given :
             {LayerCheckpointing{}, LayerCheckpointing{.mode = Mode::every, .interval = 5}}) {
          CAPTURE(kind, is_precise, is_read, given);
          const Tensor scale = Tensor::full({8}, 0.5);
          const auto scaled = [&](const Var& x) {
            const Var constant = x.tape().constant(scale, "scale");
            return is_read ? x * constant : x * 2.0;
          };
          const auto stepped = [&](const std::function<Var(const Var&)>& f, const Var& x) {
            return scan(x, 2, [&](const Var& state, const StepNumber&) { return f(state); });
          };
          LayerModel model = perceptron(5, 8);
          model.layer.forward = [&, plain = model.layer.forward](const Var& x,
                                                                 std::span<const Var> w,
                                                                 int layer) -> LayerOutput {
            if (layer != 2) return plain(x, w, layer);
            const auto checkpointed = [&](const Var& v) { return checkpoint(scaled, v); };
            const auto looped = [&](const Var& v) { return stepped(scaled, v); };
            const Var inner = kind == "checkpoint"           ? checkpointed(x)
                              : kind == "scan"               ? looped(x)
                              : kind == "checkpoint in scan" ? stepped(checkpointed, x)
                                                             : checkpoint(looped, x);
            const Var y = plain(inner, w, layer).output;
            x.tape().update_after_run(scale, mean(y, {0}), 0.5);
            return y;
          };
          const std::optional<Precision> precision =
              is_precise ? std::optional(Precision{}) : std::nullopt;
          LayerCheckpointer layers(model, given, {}, precision);
          layers.forward(input);
          const Tensor first = layers.backward(loss).input;
          if (is_read) {
            CHECK_THROWS_WITH(layers.backward(loss), Contains("has changed") && Contains("scale") &&
                                                         Contains("layer 2 reads it"));
          } else {
            CHECK(same_bits(layers.backward(loss).input, first));
          }
        }
      }
    }
  }
}

TEST_CASE("layers: batch norm updates its running statistics once per pass") {
  const Tensor input = Tensor::uniform({6, 8}, 1, -1, 1);
  const auto square_mean = [](const Var& output) { return mean(output * output); };
  const auto run = [&](const auto& differentiate) {
    nn::Parameters parameters(3);
    std::vector<nn::BatchNormLayer> norms;
    LayerModel model;
    for (int layer = 0; layer < 4; ++layer) {
      const nn::Parameters own = parameters / ("layer" + std::to_string(layer));
      norms.emplace_back(own, 8);
      model.layer.parameters.push_back(own.tensors());
    }
    model.layer.forward = [&](const Var& x, std::span<const Var>, int layer) {
      return tanh(norms[static_cast<std::size_t>(layer)](x) * 2.0);
    };
    for (int step = 0; step < 3; ++step) differentiate(model);
    std::vector<Tensor> tensors;
    for (const nn::Parameter& each : parameters.all()) tensors.push_back(each.tensor());
    return tensors;
  };
  const std::vector<Tensor> expected = run([&](const LayerModel& model) {
    Tape tape;
    Var x = tape.parameter(input);
    for (int layer = 0; layer < 4; ++layer) x = model.layer.forward(x, {}, layer);
    backward(square_mean(x));
  });
  for (LayerCheckpointing given : configurations_to_try) {
    if (given.memory_fraction) given.memory_fraction = 0.8;
    const std::vector<Tensor> found = run([&](const LayerModel& model) {
      LayerCheckpointer layers(model, given);
      layers.forward(input);
      layers.backward(square_mean);
    });
    CHECK(same_bits(found, expected));
  }
}

}  // namespace palimpsest::layer_outputs_test
