#include "examples/support/residual_network.h"

#include <cmath>

namespace examples {

using namespace palimpsest;

namespace {

std::string block_name(int stage, int block) {
  return "stage" + std::to_string(stage) + "/block" + std::to_string(block);
}

/// Mean pooling over 2 × 2 positions.
Var halved(const Var& x) {
  const Shape shape = x.shape();
  const Shape cells{shape[0], shape[1], shape[2] / 2, 2, shape[3] / 2, 2};
  return mean(reshape(x, cells), {3, 5});
}

}  // namespace

ResidualNetwork::ResidualNetwork(const Options& options) : options_(options) {
  std::uint64_t seed = options.seed * 1000;
  const auto convolution = [&](const std::string& name, std::int64_t results, std::int64_t channels,
                               double scale) {
    const double deviation = std::sqrt(2.0 / static_cast<double>(channels * 9));
    weights_[name + ".weight"] = Tensor::normal({results, channels, 3, 3}, seed++, 0, deviation);
    weights_[name + ".scale"] = Tensor::full({results}, scale);
    weights_[name + ".shift"] = Tensor::zeros({results});
  };
  std::int64_t channels = options.channels;
  convolution("stem", channels, 1, 1);
  const int stages = static_cast<int>(options.blocks.size());
  for (int stage = 0; stage < stages; ++stage) {
    for (int block = 0; block < options.blocks[static_cast<std::size_t>(stage)]; ++block) {
      const std::int64_t from = stage > 0 && block == 0 ? channels / 2 : channels;
      convolution(block_name(stage, block) + "/first", channels, from, 1);
      // With scale 0 each block starts as the identity.
      convolution(block_name(stage, block) + "/second", channels, channels, 0);
    }
    if (stage + 1 < stages) channels *= 2;
  }
  const std::int64_t side = options.image_size >> stages;  // halved between stages and at the end
  const std::int64_t features = channels * side * side;
  const double deviation = std::sqrt(0.1 / static_cast<double>(features));
  weights_["classifier.weight"] = Tensor::normal({features, options.classes}, seed, 0, deviation);
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
  for (int stage = 0; stage < static_cast<int>(options_.blocks.size()); ++stage) {
    for (int block = 0; block < options_.blocks[static_cast<std::size_t>(stage)]; ++block) {
      const std::string name = block_name(stage, block);
      const auto scope = tape.scope(name);
      const bool halves = stage > 0 && block == 0;
      const Var hidden = relu(normalized_convolution(x, name + "/first", halves ? 2 : 1));
      const Var change = normalized_convolution(hidden, name + "/second", 1);
      // Where the image is halved, the skip connection is its 2 × 2 mean, repeated for the doubled
      // channels.
      const Var around = halves ? halved(x) : x;
      x = relu(change + (halves ? concat({around, around}, 1) : around));
    }
  }
  const Var features = reshape(halved(x), {images.shape()[0], -1});
  return linear(features, weight("classifier.weight"), weight("classifier.bias"));
}

}  // namespace examples
