// Examples of docs/reference/models.md.
#include <palimpsest/nn/nn.h>
#include <palimpsest/strategy/training/training_parts.h>

#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(Parameters, Parameter) {
  nn::Parameters parameters(/*seed=*/1);
  const nn::Linear layer(parameters / "encoder", 4, 8);
  print(layer.weight.name(), layer.weight.tensor().shape(), layer.weight.is_trainable());
  // → encoder/weight (4, 8) true
  print(parameters.elements(), parameters.bytes(), parameters.all().size());  // → 40 160 2
  Tape tape;
  // Recorded where it is first used.
  print(layer.weight.on(tape).shape());  // → (4, 8)
}

EXAMPLE(Parameters::add, Parameters::add_state, Parameters::trainable, Parameters::tensors) {
  nn::Parameters parameters;
  const nn::Parameter scale = parameters.add("scale", Tensor::ones({3}));
  parameters.add_state("average", Tensor::zeros({3}));
  parameters.add("weight", {3, 3}, nn::init::orthogonal(), {.in = 3, .out = 3});
  print(parameters.trainable().size(), parameters.tensors().size(), parameters["scale"] == scale);
  // → 2 2 true
}

EXAMPLE(Parameters::freeze, Parameters::unfreeze, Parameters::set_training,
        Parameters::is_training) {
  nn::Parameters parameters;
  const nn::Linear layer(parameters / "backbone", 2, 2);
  (parameters / "backbone").freeze();
  print(layer.weight.is_trainable());  // → false
  (parameters / "backbone").unfreeze();
  parameters.set_training(false);                                // dropout does nothing now
  print(layer.weight.is_trainable(), parameters.is_training());  // → true false
}

EXAMPLE(Parameters::save, Parameters::load, Parameters::named, LoadOptions, LoadResult) {
  nn::Parameters parameters(1), others(2);
  const nn::Linear layer(parameters / "head", 2, 2), same(others / "head", 2, 2);
  parameters.save("model.safetensors");
  others.load("model.safetensors");
  print(same_bits(layer.weight.tensor(), same.weight.tensor()), parameters.named().size());
  // → true 2
  // Names of another program.
  others.load({{"fc.weight", Tensor::ones({2, 2})}}, {.name_of = [](const std::string& name) {
                return name == "head/weight" ? "fc.weight" : "";
              }});
  print(same.weight.tensor());  // → [[1, 1], [1, 1]]
}

EXAMPLE(Parameters::state, Parameters::check_state, Parameters::load_state) {
  nn::Parameters parameters(1), others(2);
  const nn::Linear layer(parameters / "head", 2, 2), same(others / "head", 2, 2);
  const TrainingPart part("model", parameters), of_others("model", others);  // for `save_training`
  of_others.check_state(part.state());
  of_others.load_state(part.state());
  print(same_bits(layer.weight.tensor(), same.weight.tensor()));  // → true
}

EXAMPLE(Parameters::convert, Parameters::record, Parameters::summary) {
  nn::Parameters parameters;
  const nn::Linear layer(parameters / "head", 2, 2);
  parameters.convert(DType::f64);
  Tape tape;
  parameters.record(tape);  // before `checkpoint`, which may not record parameters
  print(layer.weight.tensor().dtype(), tape.node_count(), parameters.summary().empty());
  // → f64 2 false
}

EXAMPLE(Parameters::scope, Parameter::scope) {
  nn::Parameters p;
  const nn::Parameter gain = (p / "encoder").add("gain", Tensor::ones({2}));
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2}));
  const auto scope = (p / "encoder").scope(tape);  // that of `gain` too
  const Var y = x * gain.on(x);
  print(tape.scope_of(y.node()));  // → encoder
}

EXAMPLE(Linear, LinearOptions) {
  nn::Parameters p;
  const nn::Linear layer(p / "fc", 4, 2, {.bias = false});
  Tape tape;
  print(layer(tape.constant(Tensor::ones({3, 4}))).shape());  // → (3, 2)
}

EXAMPLE(Conv2d, Conv1d, Conv3d, Convolution, ConvolutionLayerOptions) {
  nn::Parameters p;
  const nn::Conv2d layer(p / "conv", 3, 8, 3, {.convolution = {.padding = 1}});
  Tape tape;
  print(layer(tape.constant(Tensor::ones({1, 3, 5, 5}))).shape());  // → (1, 8, 5, 5)
}

EXAMPLE(LayerNorm, RmsNorm, GroupNorm) {
  nn::Parameters p;
  const nn::LayerNorm layer(p / "norm", 4);
  const nn::RmsNorm rms(p / "rms", 4);
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2, 4}));
  print(layer(x).shape(), rms(x)[0]);  // → (2, 4) [1, 1, 1, 1]
}

EXAMPLE(BatchNormLayer, BatchNormOptions) {
  nn::Parameters p;
  const nn::BatchNormLayer layer(p / "norm", 2, {.momentum = 0.5});
  Tape tape;
  backward(sum(square(layer(tape.constant(Tensor::matrix({{1, 2}, {3, 4}}))))));
  // Updated once, by the run.
  print(layer.mean.tensor());  // → [1, 1.5]
}

EXAMPLE(WeightNorm, SpectralNormLayer) {
  nn::Parameters p;
  const nn::init::Fans fans{.in = 4, .out = 2};
  const nn::WeightNorm weight(p / "w", {2, 4}, nn::init::fan_in_uniform(), fans);
  Tape tape;
  const Var x = tape.constant(Tensor::ones({3, 4}));
  print(matmul(x, weight.on(x), {.transpose_b = true}).shape());  // → (3, 2)
  const nn::SpectralNormLayer other(p / "v", {2, 4}, nn::init::fan_in_uniform(), fans);
  print(other.on(x).shape());  // → (2, 4)
}

EXAMPLE(Embedding) {
  nn::Parameters p;
  const nn::Embedding words(p / "words", 100, 16);
  Tape tape;
  print(words(tape.constant(Tensor::from<std::int64_t>({7, 42}, {2}))).shape());  // → (2, 16)
}

EXAMPLE(Attention, AttentionLayerOptions) {
  nn::Parameters p;
  const nn::Attention layer(p / "attention", 16, /*heads=*/4, {.causal = true});
  Tape tape;
  print(layer(tape.constant(Tensor::ones({2, 5, 16}))).shape());  // → (2, 5, 16)
}

EXAMPLE(Lstm, Gru, Rnn, RecurrentWeights) {
  nn::Parameters p;
  const nn::Lstm lstm(p / "lstm", 4, 8);
  const nn::Gru gru(p / "gru", 4, 8);
  Tape tape;
  const Var x = tape.constant(Tensor::ones({7, 2, 4}));  // steps, batch, inputs
  print(lstm(x).outputs.shape(), gru(x).h.shape());      // → (7, 2, 8) (2, 8)
}

EXAMPLE(Dropout, Residual, Sequential, call_layer) {
  nn::Parameters p;
  const nn::Sequential layers(
      nn::Linear(p / "a", 4, 8), [](const Var& x) { return relu(x); }, nn::Dropout(p, 0.1),
      nn::Residual{nn::Linear(p / "b", 8, 8)});
  Tape tape;
  print(layers(tape.constant(Tensor::ones({3, 4}))).shape());  // → (3, 8)
}

EXAMPLE(Stack) {
  nn::Parameters p;
  const nn::Stack<nn::Linear> layers(p / "layers", 3, 8, 8);
  Tape tape;
  print(layers(tape.constant(Tensor::ones({2, 8}))).shape(), layers.layers().size());  // → (2, 8) 3
  print(layers.layers()[2].weight.name());  // → layers/2/weight
}

EXAMPLE(constant, zeros, ones, uniform, normal, truncated_normal, fan_in_uniform, xavier_uniform,
        xavier_normal, kaiming_uniform, kaiming_normal, orthogonal, Fans, Fan) {
  nn::Parameters p(/*seed=*/1);
  p.add("bias", {2}, nn::init::constant(0.5), {});
  p.add("weight", {2, 2}, nn::init::xavier_uniform(), {.in = 2, .out = 2});
  const nn::Linear layer(p / "fc", 4, 2, {.weight_init = nn::init::kaiming_normal()});
  print(p["bias"].tensor(), p["weight"].tensor().shape(), p.elements());  // → [0.5, 0.5] (2, 2) 16
}

EXAMPLE(Parameter::defined, Parameter::is_state, Sequential::get) {
  nn::Parameters p;
  const nn::Sequential layers(nn::Linear(p / "a", 4, 8, {.bias = false}));
  print(layers.get<0>().bias.defined(), layers.get<0>().weight.is_state());  // → false false
}

}  // namespace reference
