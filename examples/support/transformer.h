#pragma once

#include "palimpsest.h"

namespace examples {

/// A causal transformer over tokens (Vaswani et al., 2017) with normalisation before each sublayer.
/// Each block consists of attention and a feed-forward network four times as wide. Each sublayer
/// has its own name scope ("block2/attention"), so a planner can be told to recompute it.
class Transformer {
 public:
  struct Options {
    std::int64_t tokens = 256;  ///< size of the vocabulary
    std::int64_t context = 128;
    std::int64_t width = 128;
    std::int64_t heads = 4;
    int blocks = 4;
    std::uint64_t seed = 1;
  };

  explicit Transformer(const Options& options);

  /// Logits (n, length, tokens) for the token after each of `tokens`, i32 (n, length). The length
  /// is at most the context. Records all weights as parameters of the tape.
  palimpsest::Var logits(palimpsest::Tape& tape, const palimpsest::Var& tokens) const;

  const Options& options() const { return options_; }
  /// The weights by name. They share storage with the model.
  const palimpsest::NamedTensors& weights() const { return weights_; }

 private:
  Options options_;
  palimpsest::NamedTensors weights_;
};

}  // namespace examples
