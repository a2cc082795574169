#include "examples/support/residual_network.h"

#include <cmath>

namespace examples {

using namespace palimpsest;

namespace {

std::string block_name(int stage, int block) {
  return "stage" + std::to_string(stage) + "/block" + std::to_string(block);
}

}  // namespace

ResidualNetwork::ResidualNetwork(const Options& options) : options_(options) {
  std::uint64_t seed = options.seed * 1000;
  const auto convolution = [&](const std::string& name, std::int64_t results,
                               std::int64_t channels) {
    const double deviation = std::sqrt(2.0 / static_cast<double>(channels * 9));
    weights_[name + ".weight"] = Tensor::normal({results, channels, 3, 3}, seed++, 0, deviation);
    weights_[name + ".scale"] = Tensor::ones({results});
    weights_[name + ".shift"] = Tensor::zeros({results});
  };
  std::int64_t channels = options.channels;
  convolution("stem", channels, 1);
  for (int stage = 0; stage < options.stages; ++stage) {
    for (int block = 0; block < options.blocks; ++block) {
      const std::int64_t from = stage > 0 && block == 0 ? channels / 2 : channels;
      convolution(block_name(stage, block) + "/first", channels, from);
      convolution(block_name(stage, block) + "/second", channels, channels);
    }
    if (stage + 1 < options.stages) channels *= 2;
  }
  const double deviation = std::sqrt(1.0 / static_cast<double>(channels));
  weights_["classifier.weight"] = Tensor::normal({channels, options.classes}, seed, 0, deviation);
  weights_["classifier.bias"] = Tensor::zeros({options.classes});
}

Var ResidualNetwork::logits(Tape& tape, const Var& images) const {
  const auto weight = [&](const std::string& name) {
    return tape.parameter(weights_.at(name), name);
  };
  const auto normalized_convolution = [&](const Var& x, const std::string& name,
                                          std::int64_t stride) {
    const Var y = conv2d(x, weight(name + ".weight"), {}, {.stride = stride, .padding = 1});
    return group_norm(y, 4, weight(name + ".scale"), weight(name + ".shift"));
  };
  Var x = relu(normalized_convolution(images, "stem", 1));
  for (int stage = 0; stage < options_.stages; ++stage) {
    for (int block = 0; block < options_.blocks; ++block) {
      const std::string name = block_name(stage, block);
      const auto scope = tape.scope(name);
      const bool halves = stage > 0 && block == 0;
      const Var hidden = relu(normalized_convolution(x, name + "/first", halves ? 2 : 1));
      const Var change = normalized_convolution(hidden, name + "/second", 1);
      // Where the image halves, the way around is its mean over 2 × 2, twice, one for each half of
      // the doubled channels.
      const Var around = halves ? average_pool(x, {.kernel = 2, .stride = 2}) : x;
      x = relu(change + (halves ? concat({around, around}, 1) : around));
    }
  }
  const Var features = mean(x, {2, 3});
  return matmul(features, weight("classifier.weight")) + weight("classifier.bias");
}

}  // namespace examples
