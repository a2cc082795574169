#pragma once

#include <string>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// A model in f32 whose loss is a mean over the examples of its batch.
struct SmallModel {
  std::string name;
  std::vector<Tensor> parameters;
  std::vector<Tensor> batch;
  ModelFunction loss;
};

/// Two layers on random data.
inline SmallModel perceptron() {
  return {"perceptron",
          {Tensor::normal({10, 16}, 1, 0, 0.3), Tensor::normal({16}, 2, 0, 0.1),
           Tensor::normal({16, 3}, 3, 0, 0.3)},
          {Tensor::uniform({6, 10}, 4, -1, 1), Tensor::uniform({6, 3}, 5, -1, 1)},
          [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
            Var y;
            {
              const auto scope = tape.scope("hidden");
              y = tanh(matmul(batch[0], p[0]) + p[1]);
            }
            const auto scope = tape.scope("out");
            const Var error = matmul(y, p[2]) - batch[1];
            return mean(error * error);
          }};
}

/// An attention block and a layer after it that predict tokens from preceding ones. Both ends share
/// one table of tokens.
inline SmallModel small_transformer() {
  constexpr std::int64_t width = 8;
  constexpr std::int64_t tokens = 7;
  static constexpr std::int64_t context = 5;
  const Tensor text({6, context + 1}, DType::i32);
  std::int32_t token = 1;
  for (std::int32_t& each : text.data<std::int32_t>()) {
    token = (3 * token + 2) % static_cast<std::int32_t>(tokens);
    each = token;
  }
  std::vector<Tensor> parameters{Tensor::normal({tokens, width}, 1, 0, 0.5), Tensor::ones({width}),
                                 Tensor::zeros({width})};
  for (std::uint64_t k = 0; k < 5; ++k) {
    parameters.push_back(Tensor::normal({width, width}, 10 + k, 0, 0.35));
  }
  return {"transformer",
          parameters,
          {text},
          [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
            const Var in = slice(batch[0], 1, {.stop = context});
            Var x = embedding(p[0], in);
            {
              const auto scope = tape.scope("attention");
              const AttentionParameters projections{p[3], p[4], p[5], p[6]};
              x = x +
                  multi_head_attention(layer_norm(x, p[1], p[2]), projections, 2, {.causal = true});
            }
            {
              const auto scope = tape.scope("layer");
              x = x + gelu(matmul(x, p[7]));
            }
            return cross_entropy(matmul(x, transpose(p[0])), slice(batch[0], 1, {.start = 1}));
          }};
}

/// Two convolutions, max pooling, and a layer that distinguishes three kinds of images.
inline SmallModel small_convolution() {
  const Tensor kinds({6}, DType::i32);
  std::int32_t kind = 0;
  for (std::int32_t& each : kinds.data<std::int32_t>()) each = kind++ % 3;
  return {"convolution",
          {Tensor::normal({4, 2, 3, 3}, 1, 0, 0.3), Tensor::normal({4}, 2, 0, 0.1),
           Tensor::normal({6, 4, 3, 3}, 3, 0, 0.2), Tensor::normal({54, 3}, 4, 0, 0.2)},
          {Tensor::uniform({6, 2, 8, 8}, 5, -1, 1), kinds},
          [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
            Var x;
            {
              const auto scope = tape.scope("first");
              x = relu(conv2d(batch[0], p[0], p[1], {.padding = 1}));
            }
            {
              const auto scope = tape.scope("second");
              x = max_pool(tanh(conv2d(x, p[2])), 2);
            }
            return cross_entropy(matmul(flatten(x, 1), p[3]), batch[1]);
          }};
}

/// Heat steps on a ring, with the conductivity of every cell as parameter.
inline SmallModel heat() {
  constexpr std::int64_t cells = 24;
  return {"heat",
          {Tensor::uniform({cells}, 1, 0.1, 0.3)},
          {Tensor::uniform({6, cells}, 2, 0, 1), Tensor::uniform({6, cells}, 3, 0, 1)},
          [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
            Var u = batch[0];
            for (int step = 0; step < 8; ++step) {
              u = u + p[0] * (roll(u, 1, 1) - 2.0 * u + roll(u, -1, 1));
            }
            const Var error = u - batch[1];
            return mean(error * error);
          }};
}

/// A model with dropout on its hidden values.
inline SmallModel with_dropout() {
  SmallModel model = perceptron();
  model.name = "dropout";
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    const Var y = dropout(tanh(matmul(batch[0], p[0]) + p[1]), 0.4);
    const Var error = dropout(matmul(y, p[2]), 0.2) - batch[1];
    return mean(error * error);
  };
  return model;
}

/// Every step multiplies by the same small matrix, so that the products' adjoints are computed
/// together, and reads slices of a state.
inline SmallModel recurrent() {
  return {"recurrent",
          {Tensor::normal({24, 24}, 1, 0, 0.2), Tensor::normal({24, 24}, 2, 0, 0.2)},
          {Tensor::uniform({6, 5, 24}, 3, -1, 1)},
          [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
            const Var sequence = tanh(batch[0] * 2.0);
            Var state = select(sequence, 1, 0);
            for (int t = 1; t < 5; ++t) {
              state = tanh(matmul(state, p[0]) + matmul(select(sequence, 1, t), p[1]));
            }
            return mean(state * state);
          }};
}

}  // namespace palimpsest
