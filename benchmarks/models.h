#pragma once

#include <functional>
#include <string>
#include <vector>

#include "palimpsest.h"

namespace palimpsest::benchmarks {

/// A program with one loss, recorded anew for each step as a user's training loop does.
struct Model {
  std::string name;
  std::function<Var(Tape&)> record_loss;
};

/// 24 layers of 256 units, batch 2048.
Model mlp();
/// The network of the demo, batch 128.
Model residual_network();
/// That of example 05: 4 blocks of width 128, 16 passages of 128 tokens.
Model transformer();
/// 200 steps of 128 units, batch 32, a loss at each step.
Model rnn();

std::vector<Model> models();

}  // namespace palimpsest::benchmarks
