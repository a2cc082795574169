#pragma once

#include <functional>
#include <string>
#include <vector>

#include "palimpsest.h"

namespace palimpsest::benchmarks {

/// A program with one loss. Each step records it anew, as a user's training loop does.
struct Model {
  std::string name;
  std::function<Var(Tape&)> record_loss;
};

/// 24 layers of 256 units, batch 2048.
Model mlp();
/// The network of example 02, batch 128.
Model residual_network();
/// By default the transformer of example 05, with 16 passages of 128 tokens.
struct TransformerSize {
  int blocks = 4;
  std::int64_t width = 128;
};
Model transformer(const TransformerSize& size = {});
/// A recurrent network with a loss at each step.
struct RnnSize {
  int steps = 200;
  std::int64_t width = 128;
  std::int64_t batch = 32;
};
Model rnn(const RnnSize& size = {});

std::vector<Model> models();

}  // namespace palimpsest::benchmarks
