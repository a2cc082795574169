#pragma once

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "autodiff/operations/sequence.h"
#include "nn/parameters.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn {

/// The weights of one recurrent layer, uniform within ±1/√width. They are added under the names of
/// the members. PyTorch has two biases and adds them.
struct RecurrentWeights {
  Parameter input;        ///< (inputs, gates·width)
  Parameter hidden;       ///< (width, gates·width)
  Parameter bias;         ///< (gates·width)
  Parameter hidden_bias;  ///< (gates·width), only of a `Gru`
  std::int64_t width;

  RecurrentWeights(Parameters parameters, std::int64_t inputs, std::int64_t state_width,
                   std::int64_t gates, bool has_hidden_bias);
  CellParameters on(const Located& x) const;
  /// Zeros of the shape of a state for a sequence x (T, …, inputs).
  Var first_state(const Located& x) const;
};

// Layers over sequences x (T, …, inputs). Outputs are (T, …, width). Without a first state they
// begin at zeros.

/// `rnn`.
struct Rnn {
  RecurrentWeights weights;
  CellActivation activation;

  Rnn(const Parameters& parameters, std::int64_t inputs, std::int64_t width,
      CellActivation of_state = CellActivation::tanh)
      : weights(parameters, inputs, width, 1, false), activation(of_state) {}
  RecurrentOutput operator()(const Located& x, const Var& h = {}) const;
};

/// `lstm`.
struct Lstm {
  RecurrentWeights weights;

  Lstm(const Parameters& parameters, std::int64_t inputs, std::int64_t width)
      : weights(parameters, inputs, width, 4, false) {}
  LstmOutput operator()(const Located& x, const LstmState& state = {}) const;
};

/// `gru`.
struct Gru {
  RecurrentWeights weights;

  Gru(const Parameters& parameters, std::int64_t inputs, std::int64_t width)
      : weights(parameters, inputs, width, 3, true) {}
  RecurrentOutput operator()(const Located& x, const Var& h = {}) const;
};

}  // namespace nn
}  // namespace palimpsest
