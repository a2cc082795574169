#pragma once

#include <cmath>

#include "palimpsest.h"

namespace palimpsest {

/// Weights of `layers` layers, each with the given shapes.
inline std::vector<std::vector<Tensor>> weights(int layers, const std::vector<Shape>& shapes,
                                                std::uint64_t seed, DType dtype = DType::f32) {
  std::vector<std::vector<Tensor>> made(static_cast<std::size_t>(layers));
  for (auto& layer : made) {
    for (const Shape& shape : shapes) layer.push_back(Tensor::normal(shape, ++seed, 0, 0.3, dtype));
  }
  return made;
}

/// Layers tanh(tanh(x·w + b)·v) of `width` numbers, with a hidden width three times as large.
inline LayerModel perceptron(int layers, std::int64_t width, DType dtype = DType::f32) {
  const std::vector<Shape> shapes{{width, 3 * width}, {3 * width}, {3 * width, width}};
  return {.layer = {.parameters = weights(layers, shapes, 100, dtype),
                    .forward = [](const Var& x, std::span<const Var> w, int) {
                      return tanh(matmul(tanh(matmul(x, w[0]) + w[1]), w[2]));
                    }}};
}

/// Transformer layers on (n, length, width): causal attention, and a feed-forward network twice as
/// wide, each with dropout and preceded by a normalisation.
inline LayerModel transformer(int layers, std::int64_t width) {
  const Shape square{width, width};
  return {
      .attention = {.parameters =
                        weights(layers, {{width}, {width}, square, square, square, square}, 200),
                    .forward =
                        [](const Var& x, std::span<const Var> w, int) {
                          const Var normal = layer_norm(x, w[0], w[1]);
                          const AttentionParameters projections{
                              .query = w[2], .key = w[3], .value = w[4], .output = w[5]};
                          return x + multi_head_attention(normal, projections, 2, {.causal = true});
                        }},
      .feed_forward = {
          .parameters = weights(
              layers, {{width}, {width}, {width, 2 * width}, {2 * width}, {2 * width, width}}, 300),
          .forward = [](const Var& x, std::span<const Var> w, int) {
            const Var normal = layer_norm(x, w[0], w[1]);
            const Var hidden = gelu(linear(normal, w[2], w[3]));
            return x + dropout(matmul(hidden, w[4]), 0.2);
          }}};
}

/// Unusual layers: some leave their input as it is, read it as a view, ignore a parameter, use
/// operations with several outputs, or have no parameters.
inline LayerModel odd_layers() {
  return {.layer = {.parameters = {{},
                                   {Tensor::normal({6, 4}, 1)},
                                   {},
                                   {Tensor::normal({4}, 2)},
                                   {},
                                   {Tensor::normal({4}, 3)}},
                    .forward = [](const Var& x, std::span<const Var> w, int layer) -> Var {
                      switch (layer) {
                        case 0:
                          return x;
                        case 1:
                          return reshape(x, {4, 6});
                        case 2: {
                          const std::vector<Var> halves = split(x, {3, 3}, 1);
                          return concat({halves[1], sin(halves[0])}, 1);
                        }
                        case 3:
                          return reshape(x, {6, 4}) * w[0];
                        case 4:
                          return checkpoint([](const Var& y) { return exp(sin(y)) * y; }, x);
                        default:
                          return scan(x, 3, [&](const Var& y, const StepNumber&) {
                            return tanh(y + w[0]);
                          });
                      }
                    }}};
}

/// The functions of a model in order, with their parameters.
struct Stage {
  const LayerFunction* function;
  int layer;
};
inline std::vector<Stage> stages_of(const LayerModel& model) {
  std::vector<Stage> stages;
  const bool whole = model.layer.forward != nullptr;
  const LayerFunction& first = whole ? model.layer : model.attention;
  for (int layer = 0; layer < static_cast<int>(first.parameters.size()); ++layer) {
    stages.push_back({&first, layer});
    if (!whole) stages.push_back({&model.feed_forward, layer});
  }
  return stages;
}

/// The results of the whole model on one tape.
struct Whole {
  Tensor loss;
  std::vector<Tensor> activations;  // from the input to the output
  std::vector<Tensor> gradients;    // of the parameters, then of the input if it is floating
};
inline Whole run_whole(const LayerModel& model, const Tensor& input,
                       const std::function<Var(const Var&)>& loss_of, std::uint64_t seed = 0,
                       std::shared_ptr<Evaluator> evaluator = nullptr) {
  Tape tape(std::move(evaluator));
  tape.set_seed(seed);
  const bool floating = is_floating(input.dtype());
  Var x = floating ? tape.parameter(input) : tape.constant(input);
  const Var start = x;
  std::vector<Var> activations{x};
  std::vector<Var> parameters;
  for (const auto& [function, layer] : stages_of(model)) {
    std::vector<Var> own;
    for (const Tensor& tensor : function->parameters[static_cast<std::size_t>(layer)]) {
      own.push_back(tape.parameter(tensor));
    }
    parameters.insert(parameters.end(), own.begin(), own.end());
    x = function->forward(x, own, layer);
    activations.push_back(x);
  }
  const Gradients found = backward(loss_of(x));
  Whole whole{.loss = found.loss(), .activations = {}, .gradients = {}};
  for (const Var& each : activations) whole.activations.push_back(each.value());
  for (const Var& each : parameters) whole.gradients.push_back(found[each]);
  if (floating) whole.gradients.push_back(found[start]);
  return whole;
}

/// The gradients of all parameters and, if there is one, of the input.
inline std::vector<Tensor> all(const LayerGradients& found) {
  std::vector<Tensor> gradients;
  for (const auto& entry : found.parameters) gradients.push_back(entry.gradient);
  if (found.input.defined()) gradients.push_back(found.input);
  return gradients;
}

inline bool same_bits(std::span<const Tensor> a, std::span<const Tensor> b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = same_bits(a[i], b[i]);
  return same;
}

inline Var square_sum(const Var& y) { return sum(y * y); }

/// Every mode with every choice of sublayers and several limits, for models of at least 5 layers.
inline std::vector<LayerCheckpointing> configurations(bool sublayers) {
  using Mode = LayerCheckpointing::Mode;
  std::vector<LayerCheckpointing> made{{.mode = Mode::none}};
  std::vector<LayerCheckpointing::Sublayers> choices{{true, false}};
  if (sublayers) choices.insert(choices.end(), {{true, true}, {false, true}});
  for (const auto& choice : choices) {
    for (const Codec codec : {Codec::exact, Codec::half, Codec::half_f16}) {
      for (const int interval : {1, 2, 3, 100}) {
        made.push_back(
            {.mode = Mode::every, .interval = interval, .sublayers = choice, .codec = codec});
      }
      made.push_back({.mode = Mode::every,
                      .interval = 1,
                      .minimum_interval = 1,
                      .sublayers = choice,
                      .max_kept = 2,
                      .codec = codec});
      made.push_back({.mode = Mode::listed, .layers = {3, 1}, .sublayers = choice, .codec = codec});
      made.push_back({.mode = Mode::listed,
                      .layers = {0, 4},
                      .sublayers = choice,
                      .max_kept = 4,
                      .codec = codec});
      for (const double fraction : {1.0, 0.8, 0.6}) {
        made.push_back({.mode = Mode::dynamic,
                        .memory_fraction = fraction,
                        .sublayers = choice,
                        .codec = codec});
      }
      made.push_back({.mode = Mode::dynamic,
                      .minimum_interval = 2,
                      .memory_fraction = 0.9,
                      .sublayers = choice,
                      .max_kept = 1,
                      .codec = codec});
    }
  }
  return made;
}

}  // namespace palimpsest
