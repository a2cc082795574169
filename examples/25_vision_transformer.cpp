// Trains a small vision transformer (Dosovitskiy et al., 2021) on Fashion-MNIST. Five epochs took
// 8.5 minutes of processor time (Intel Xeon, AVX-512) and classified 91.09 % of the test images
// correctly.
//
//   25_vision_transformer [--epochs N] [--state FILE] [--budget MIB] [--require PERCENT] ...
#include <palimpsest.h>
#include <palimpsest/nn/nn.h>

#include <string>
#include <vector>

#include "examples/support/classifier_training.h"
#include "examples/support/normalized_convolution.h"

using namespace palimpsest;
using examples::NormalizedConvolution;

namespace {

constexpr std::int64_t width = 64;
constexpr std::int64_t heads = 4;
constexpr std::int64_t blocks = 3;
constexpr std::int64_t tokens = 7 * 7;

/// Attention and a feed-forward network, each after a normalization and added to its input. At
/// first the feed-forward network adds zeros, which makes training faster.
struct Block {
  explicit Block(nn::Parameters p)
      : attention_norm(p / "attention_norm", width),
        attention(p / "attention", width, heads),
        norm(p / "norm", width),
        widen(p / "widen", width, 2 * width),
        narrow(p / "narrow", 2 * width, width,
               {.weight_init = nn::init::zeros(), .bias_init = nn::init::zeros()}) {}

  Var operator()(const Var& x) const {
    const Var y = x + attention(attention_norm(x));
    return y + narrow(gelu(widen(norm(y))));
  }

  nn::LayerNorm attention_norm;
  nn::Attention attention;
  nn::LayerNorm norm;
  nn::Linear widen;
  nn::Linear narrow;
};

/// Four convolutions make the tokens (Xiao et al., 2021), which needs fewer epochs than patches of
/// pixels do. The mean of the last block's tokens is classified.
struct VisionTransformer {
  explicit VisionTransformer(nn::Parameters p)
      : stem{{p / "stem0", 1, width / 4, 1},
             {p / "stem1", width / 4, width / 2, 2},
             {p / "stem2", width / 2, width, 2},
             {p / "stem3", width, width, 1}},
        positions(p.add("positions", {tokens, width}, nn::init::normal(0.02), {})),
        norm(p / "norm", width),
        head(p / "head", width, 10) {
    for (std::int64_t i = 0; i < blocks; ++i) {
      layers.emplace_back(p / ("block" + std::to_string(i)));
    }
  }

  Var operator()(const Var& images) const {
    Var features = images;
    for (const NormalizedConvolution& convolution : stem) features = relu(convolution(features));
    Var x = transpose(reshape(features, {-1, width, tokens})) + positions.on(images);
    for (const Block& block : layers) x = block(x);
    return head(mean(norm(x), {1}));
  }

  std::vector<NormalizedConvolution> stem;
  nn::Parameter positions;
  std::vector<Block> layers;
  nn::LayerNorm norm;
  nn::Linear head;
};

examples::ClassifierTask make_task(std::int64_t steps) {
  const nn::Parameters parameters(1);
  return {.parameters = parameters,
          .logits = VisionTransformer(parameters),
          .optimizer = adamw(
              {.weight_decay = 0.05, .groups = {{.matches = axes_at_most(1), .weight_decay = 0}}}),
          .rate = one_cycle(
              {.highest = 1.5e-3, .steps = steps, .rising_share = 0.1, .start_divisor = 10})};
}

}  // namespace

int main(int argc, char** argv) {
  return examples::classifier_main(argc, argv, {.epochs = 5, .batch = 64}, make_task);
}
