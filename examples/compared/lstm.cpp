// An LSTM learns to predict the next token of long sequences. Each step trains on a part of them
// and hands its last state to the next step.
#include <palimpsest.h>
#include <palimpsest/nn/nn.h>

#include <cstdio>

#include "examples/compared/support.h"

using namespace palimpsest;

struct LanguageModel {
  nn::Parameters p;
  nn::Embedding embed{p / "embed", 32, 64};
  nn::Lstm lstm{p / "lstm", 64, 128};
  nn::Linear head{p / "head", 128, 32};
};

int main() {
  nn::Parameters parameters;
  const LanguageModel model{parameters};
  same_parameters(parameters);
  const auto optimizer = adam({.learning_rate = 3e-3});
  Tensor h = Tensor::zeros({16, 128}), c = Tensor::zeros({16, 128});
  Tape tape;
  for (int step = 0; step < 20; ++step) {
    tape.clear();
    const Var text = tape.constant(classes({51, 16}, "text " + std::to_string(step % 3), 32));
    const LstmState before{tape.constant(h), tape.constant(c)};
    const auto [outputs, after] = model.lstm(model.embed(slice(text, 0, {.stop = -1})), before);
    const Var loss = cross_entropy(model.head(outputs), slice(text, 0, {.start = 1}));
    const Gradients gradients = backward(loss, {after.h, after.c});
    clip_by_norm(gradients, 0.5);
    optimizer->step(gradients);
    h = gradients.outputs()[0], c = gradients.outputs()[1];
    std::printf("step %d loss %.8g\n", step, gradients.loss().item());
  }
}
