#include "benchmarks/models.h"

#include <cmath>
#include <memory>

#include "examples/support/residual_network.h"
#include "examples/support/transformer.h"

namespace palimpsest::benchmarks {
namespace {

/// Class labels drawn from [0, count), i32.
Tensor classes(const Shape& shape, std::int64_t count) {
  Tensor result(shape, DType::i32);
  std::int32_t number = 1;
  for (std::int32_t& element : result.data<std::int32_t>()) {
    number = static_cast<std::int32_t>((number * std::int64_t{75} + 74) % 65537);
    element = static_cast<std::int32_t>(number % count);
  }
  return result;
}

}  // namespace

Model mlp() {
  constexpr std::int64_t width = 256;
  std::vector<Tensor> weights;
  for (std::uint64_t layer = 0; layer < 24; ++layer) {
    weights.push_back(Tensor::normal({width, width}, layer, 0, std::sqrt(2.0 / width)));
  }
  const Tensor input = Tensor::normal({2048, width}, 100);
  const Tensor labels = classes({2048}, width);
  return {"mlp", [=](Tape& tape) {
            Var x = tape.constant(input);
            for (std::size_t layer = 0; layer < weights.size(); ++layer) {
              x = matmul(x, tape.parameter(weights[layer]));
              if (layer + 1 < weights.size()) x = relu(x);
            }
            return cross_entropy(x, tape.constant(labels));
          }};
}

Model residual_network() {
  const auto network =
      std::make_shared<examples::ResidualNetwork>(examples::ResidualNetwork::Options{});
  const Tensor images = Tensor::uniform({128, 1, 28, 28}, 1);
  const Tensor labels = classes({128}, 10);
  return {"residual_network", [=](Tape& tape) {
            return cross_entropy(network->logits(tape, tape.constant(images)),
                                 tape.constant(labels));
          }};
}

Model transformer(const TransformerSize& size) {
  const auto model = std::make_shared<examples::Transformer>(
      examples::Transformer::Options{.width = size.width, .blocks = size.blocks});
  const Shape shape{16, model->options().context};
  const Tensor tokens = classes(shape, model->options().tokens);
  return {"transformer", [=](Tape& tape) {
            const Var input = tape.constant(tokens);
            return cross_entropy(model->logits(tape, input), input);
          }};
}

Model rnn(const RnnSize& size) {
  const auto [steps, width, batch] = size;
  const double deviation = 1 / std::sqrt(static_cast<double>(width));
  const Tensor input = Tensor::normal({steps, batch, width}, 1);
  const Tensor from_input = Tensor::normal({width, width}, 2, 0, deviation);
  const Tensor from_state = Tensor::normal({width, width}, 3, 0, deviation);
  return {"rnn", [=](Tape& tape) {
            const Var inputs = tape.constant(input);
            const CellParameters cell{.input = tape.parameter(from_input),
                                      .hidden = tape.parameter(from_state)};
            Var h = tape.constant(Tensor::zeros({size.batch, size.width}));
            // With a loss at the end only, adjoints would become subnormal after a few dozen steps.
            Var loss = tape.constant(Tensor::scalar(0));
            for (int step = 0; step < size.steps; ++step) {
              h = rnn_cell(select(inputs, 0, step), h, cell);
              loss = loss + mean(square(h));
            }
            return loss;
          }};
}

std::vector<Model> models() { return {mlp(), residual_network(), transformer(), rnn()}; }

}  // namespace palimpsest::benchmarks
