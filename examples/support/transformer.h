#pragma once

#include "palimpsest.h"

namespace examples {

/// A causal transformer over tokens (Vaswani et al., 2017, normalised before each sublayer): blocks
/// of attention and of a feed-forward network four times as wide, each in a name scope of its own
/// ("block2/attention") that a planner can be told to recompute.
class Transformer {
 public:
  struct Options {
    std::int64_t tokens = 256;  ///< different ones
    std::int64_t context = 128;
    std::int64_t width = 128;
    std::int64_t heads = 4;
    int blocks = 4;
    std::uint64_t seed = 1;
  };

  explicit Transformer(const Options& options);

  /// Logits (n, length, tokens) of the token that follows each of `tokens`, i32 (n, length) with a
  /// length of at most the context. All weights are parameters of the tape.
  palimpsest::Var logits(palimpsest::Tape& tape, const palimpsest::Var& tokens) const;

  const Options& options() const { return options_; }
  /// The weights by name; they share storage with the model's.
  const palimpsest::NamedTensors& weights() const { return weights_; }

 private:
  Options options_;
  palimpsest::NamedTensors weights_;
};

}  // namespace examples
