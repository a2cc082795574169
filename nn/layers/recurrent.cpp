#include "nn/layers/recurrent.h"

#include <vector>

namespace palimpsest::nn {

RecurrentWeights::RecurrentWeights(Parameters parameters, std::int64_t inputs,
                                   std::int64_t state_width, std::int64_t gates,
                                   bool has_hidden_bias)
    : width(state_width) {
  const init::Initializer uniform = init::fan_in_uniform();
  const init::Fans fans{width, width};
  input = parameters.add("input", {inputs, gates * width}, uniform, fans);
  hidden = parameters.add("hidden", {width, gates * width}, uniform, fans);
  bias = parameters.add("bias", {gates * width}, uniform, fans);
  if (has_hidden_bias) {
    hidden_bias = parameters.add("hidden_bias", {gates * width}, uniform, fans);
  }
}

CellParameters RecurrentWeights::on(const Var& x) const {
  return {.input = input.on(x),
          .hidden = hidden.on(x),
          .bias = bias.on(x),
          .hidden_bias = hidden_bias.defined() ? hidden_bias.on(x) : Var()};
}

Var RecurrentWeights::first_state(const Var& x) const {
  const Shape shape = x.shape();
  if (shape.rank() < 2) {
    throw ShapeError("recurrent",
                     "a sequence has the shape (T, …, inputs), not " + to_string(shape) +
                         "; add an axis of steps",
                     x.tape().where(x.node()));
  }
  std::vector<std::int64_t> sizes(shape.begin() + 1, shape.end());
  sizes.back() = width;
  return x.tape().constant(Tensor::zeros(Shape(std::span<const std::int64_t>(sizes)), x.dtype()),
                           "state");
}

RecurrentOutput Rnn::operator()(const Var& x, const Var& h) const {
  return rnn(x, h.defined() ? h : weights.first_state(x), weights.on(x), activation);
}

LstmOutput Lstm::operator()(const Var& x, const LstmState& state) const {
  const LstmState first{state.h.defined() ? state.h : weights.first_state(x),
                        state.c.defined() ? state.c : weights.first_state(x)};
  return lstm(x, first, weights.on(x));
}

RecurrentOutput Gru::operator()(const Var& x, const Var& h) const {
  return gru(x, h.defined() ? h : weights.first_state(x), weights.on(x));
}

}  // namespace palimpsest::nn
