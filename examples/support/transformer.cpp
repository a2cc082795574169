#include "examples/support/transformer.h"

#include <cmath>
#include <string>

namespace examples {

using namespace palimpsest;

Transformer::Transformer(const Options& options) : options_(options) {
  std::uint64_t seed = options.seed * 1000;
  const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns,
                          double deviation) {
    weights_[name] = Tensor::normal({rows, columns}, seed++, 0, deviation);
  };
  const auto norm = [&](const std::string& name) {
    weights_[name + ".scale"] = Tensor::ones({options.width});
    weights_[name + ".shift"] = Tensor::zeros({options.width});
  };
  const std::int64_t width = options.width;
  const double deviation = 1 / std::sqrt(static_cast<double>(width));
  // Keeps the sum of the blocks' outputs independent of their number.
  const double added = deviation / std::sqrt(2.0 * options.blocks);
  matrix("tokens", options.tokens, width, deviation);
  matrix("positions", options.context, width, deviation);
  for (int i = 0; i < options.blocks; ++i) {
    const std::string block = "block" + std::to_string(i);
    norm(block + "/attention/norm");
    for (const char* projection : {"query", "key", "value"}) {
      matrix(block + "/attention/" + projection, width, width, deviation);
    }
    matrix(block + "/attention/output", width, width, added);
    norm(block + "/feed_forward/norm");
    matrix(block + "/feed_forward/in", width, 4 * width, deviation);
    weights_[block + "/feed_forward/bias"] = Tensor::zeros({4 * width});
    matrix(block + "/feed_forward/out", 4 * width, width, added / 2);
  }
  norm("norm");
  matrix("head", width, options.tokens, deviation);
}

Var Transformer::logits(Tape& tape, const Var& tokens) const {
  const auto weight = [&](const std::string& name) {
    return tape.parameter(weights_.at(name), name);
  };
  const auto normalized = [&](const Var& x, const std::string& name) {
    return layer_norm(x, weight(name + ".scale"), weight(name + ".shift"));
  };
  const Var positions = slice(weight("positions"), 0, {.stop = tokens.shape()[1]});
  Var x = embedding(weight("tokens"), tokens) + positions;
  for (int i = 0; i < options_.blocks; ++i) {
    const std::string block = "block" + std::to_string(i);
    const auto block_scope = tape.scope(block);
    {
      const auto scope = tape.scope("attention");
      const std::string in = block + "/attention/";
      const AttentionParameters projections{.query = weight(in + "query"),
                                            .key = weight(in + "key"),
                                            .value = weight(in + "value"),
                                            .output = weight(in + "output")};
      const Var attended = multi_head_attention(normalized(x, in + "norm"), projections,
                                                options_.heads, {.causal = true});
      x = x + attended;
    }
    const auto scope = tape.scope("feed_forward");
    const std::string in = block + "/feed_forward/";
    const Var hidden =
        gelu(linear(normalized(x, in + "norm"), weight(in + "in"), weight(in + "bias")));
    x = x + matmul(hidden, weight(in + "out"));
  }
  return matmul(normalized(x, "norm"), weight("head"));
}

}  // namespace examples
