#include "nn/recurrent.h"

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

CellParameters RecurrentWeights::on(const Located& x) const {
  CellParameters made{input.on(x), hidden.on(x)};
  made.bias = bias.on(x);
  if (hidden_bias.defined()) made.hidden_bias = hidden_bias.on(x);
  return made;
}

Var RecurrentWeights::first_state(const Located& x) const {
  const Shape shape = x.var.shape();
  if (shape.rank() < 2) {
    throw ShapeError("recurrent",
                     "a sequence has the shape (T, …, inputs), not " + to_string(shape) +
                         "; add an axis of steps",
                     x.where);
  }
  std::vector<std::int64_t> sizes(shape.begin() + 1, shape.end());
  sizes.back() = width;
  const Shape of_state{std::span<const std::int64_t>(sizes)};
  return x.var.tape().constant(Tensor::zeros(of_state, x.var.dtype()), "state", x.where);
}

RecurrentOutput Rnn::operator()(const Located& x, const Var& h) const {
  const auto scope = weights.input.scope(x.var.tape());
  const CellParameters cell = weights.on(x);
  return rnn(x.var, h.defined() ? h : weights.first_state(x), cell, activation, x.where);
}

LstmOutput Lstm::operator()(const Located& x, const LstmState& state) const {
  const auto scope = weights.input.scope(x.var.tape());
  const CellParameters cell = weights.on(x);
  const LstmState first{state.h.defined() ? state.h : weights.first_state(x),
                        state.c.defined() ? state.c : weights.first_state(x)};
  return lstm(x.var, first, cell, x.where);
}

RecurrentOutput Gru::operator()(const Located& x, const Var& h) const {
  const auto scope = weights.input.scope(x.var.tape());
  const CellParameters cell = weights.on(x);
  return gru(x.var, h.defined() ? h : weights.first_state(x), cell, x.where);
}

}  // namespace palimpsest::nn
