#include "benchmarks/training/models.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "examples/support/transformer.h"

namespace palimpsest::benchmarks {
namespace {

/// A normally distributed weight with standard deviation 1/√rows.
Tensor weight(const Shape& shape, std::uint64_t seed) {
  return Tensor::normal(shape, seed, 0, 1 / std::sqrt(static_cast<double>(shape[0])));
}

/// Class labels drawn from [0, count), i32.
Tensor class_labels(const Shape& shape, std::int64_t count) {
  return Tensor::uniform(shape, 7, 0, static_cast<double>(count)).to(DType::i32);
}

/// Layers between the given widths with relu between them, and a classification loss.
Model perceptron(const std::string& name, std::int64_t batch,
                 const std::vector<std::int64_t>& widths) {
  std::vector<Tensor> weights;
  std::vector<Tensor> biases;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    weights.push_back(weight({widths[i], widths[i + 1]}, i));
    biases.push_back(Tensor::zeros({widths[i + 1]}));
  }
  const Tensor input = Tensor::normal({batch, widths[0]}, 100);
  const Tensor labels = class_labels({batch}, widths.back());
  return {name, [=](Tape& tape) {
            Var x = tape.constant(input);
            for (std::size_t i = 0; i < weights.size(); ++i) {
              if (i > 0) x = relu(x);
              x = linear(x, tape.parameter(weights[i]), tape.parameter(biases[i]));
            }
            return cross_entropy(x, tape.constant(labels));
          }};
}

Model gpt() {
  const auto model = std::make_shared<examples::Transformer>(examples::Transformer::Options{
      .tokens = 256, .context = 256, .width = 384, .heads = 6, .blocks = 6});
  const Tensor tokens = class_labels({8, 256}, 256);
  return {"gpt", [=](Tape& tape) {
            const Var input = tape.constant(tokens);
            return cross_entropy(model->logits(tape, input), input);
          }};
}

Model convolutional() {
  const Tensor images = Tensor::normal({64, 1, 28, 28}, 1);
  const Tensor labels = class_labels({64}, 10);
  const Tensor first = Tensor::normal({32, 1, 3, 3}, 2, 0, 0.3);
  const Tensor first_bias = Tensor::zeros({32});
  const Tensor second = Tensor::normal({64, 32, 3, 3}, 3, 0, 0.06);
  const Tensor second_bias = Tensor::zeros({64});
  const Tensor last = weight({64 * 14 * 14, 10}, 4);
  const Tensor last_bias = Tensor::zeros({10});
  return {"conv", [=](Tape& tape) {
            const ConvolutionOptions same{.padding = 1};
            Var x = tape.constant(images);
            x = relu(conv2d(x, tape.parameter(first), tape.parameter(first_bias), same));
            x = relu(conv2d(x, tape.parameter(second), tape.parameter(second_bias), same));
            x = flatten(max_pool(x, 2), 1);
            x = linear(x, tape.parameter(last), tape.parameter(last_bias));
            return cross_entropy(x, tape.constant(labels));
          }};
}

constexpr std::int64_t recurrent_steps = 200;
constexpr std::int64_t recurrent_batch = 32;
constexpr std::int64_t recurrent_width = 256;

Model lstm() {
  const Tensor sequence = Tensor::normal({recurrent_steps, recurrent_batch, recurrent_width}, 1);
  const Tensor input = weight({recurrent_width, 4 * recurrent_width}, 2);
  const Tensor hidden = weight({recurrent_width, 4 * recurrent_width}, 3);
  const Tensor bias = Tensor::zeros({4 * recurrent_width});
  const Tensor zeros = Tensor::zeros({recurrent_batch, recurrent_width});
  return {"lstm", [=](Tape& tape) {
            const Var inputs = tape.constant(sequence);
            const CellParameters cell{.input = tape.parameter(input),
                                      .hidden = tape.parameter(hidden),
                                      .bias = tape.parameter(bias),
                                      .hidden_bias = tape.parameter(bias)};
            const LstmState start{tape.constant(zeros), tape.constant(zeros)};
            return mean(square(lstm(inputs, start, cell).outputs));
          }};
}

Model rnn_of_operations() {
  const Tensor sequence = Tensor::normal({recurrent_steps, recurrent_batch, recurrent_width}, 1);
  const Tensor input = weight({recurrent_width, recurrent_width}, 2);
  const Tensor hidden = weight({recurrent_width, recurrent_width}, 3);
  const Tensor shift = Tensor::zeros({recurrent_width});
  const Tensor zeros = Tensor::zeros({recurrent_batch, recurrent_width});
  return {"rnn", [=](Tape& tape) {
            const Var inputs = tape.constant(sequence);
            const Var from_input = tape.parameter(input);
            const Var from_hidden = tape.parameter(hidden);
            const Var bias = tape.parameter(shift);
            Var h = tape.constant(zeros);
            std::vector<Var> outputs;
            for (std::int64_t step = 0; step < recurrent_steps; ++step) {
              h = tanh(matmul(select(inputs, 0, step), from_input) + matmul(h, from_hidden) + bias);
              outputs.push_back(h);
            }
            return mean(square(stack(outputs, 0)));
          }};
}

Model pde(const std::string& name, std::int64_t cells) {
  constexpr int steps = 2000;
  constexpr double interval = 0.1;
  const Tensor initial = Tensor::uniform({cells}, 1);
  const Tensor speed = Tensor::scalar(0.5);
  const Tensor spread = Tensor::scalar(0.2);
  return {name, [=](Tape& tape) {
            Var u = tape.parameter(initial);
            const Var velocity = tape.parameter(speed);
            const Var diffusivity = tape.parameter(spread);
            for (int step = 0; step < steps; ++step) {
              const Var left = roll(u, 1, 0);
              const Var right = roll(u, -1, 0);
              const Var advected = velocity * (u - left);
              const Var diffused = diffusivity * ((right - u * 2.0) + left);
              u = (u - advected * interval) + diffused * interval;
            }
            return mean(square(u));
          }};
}

}  // namespace

std::vector<Model> training_models() {
  return {perceptron("mlp", 128, {784, 1024, 1024, 10}),
          gpt(),
          convolutional(),
          lstm(),
          rnn_of_operations(),
          pde("pde", 10'000),
          pde("small_pde", 100),
          perceptron("small_mlp", 16, {16, 16, 16})};
}

Model tiny_additions() {
  const Tensor start = Tensor::ones({4});
  const Tensor increment = Tensor::ones({4});
  return {"tiny", [=](Tape& tape) {
            Var x = tape.parameter(start);
            const Var a = tape.parameter(increment);
            for (int i = 0; i < tiny_nodes; ++i) x = x + a;
            return sum(x);
          }};
}

Model training_model(const std::string& name) {
  const std::vector<Model> models = training_models();
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const Model& model) { return model.name == name; });
  if (found == models.end()) throw std::out_of_range("there is no model " + name);
  return *found;
}

}  // namespace palimpsest::benchmarks
