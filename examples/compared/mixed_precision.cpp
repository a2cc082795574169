// A convolutional network learns in mixed precision: products in f16, sums and losses in f32, with
// a loss that is scaled as far up as the gradients allow.
#include <palimpsest.h>
#include <palimpsest/nn/nn.h>

#include <cstdio>

#include "examples/compared/support.h"

using namespace palimpsest;

struct Classifier {
  nn::Parameters p;
  nn::Conv2d first{p / "first", 3, 32, 3, {.convolution = {.padding = 1}}};
  nn::Conv2d second{p / "second", 32, 64, 3, {.convolution = {.padding = 1}}};
  nn::Linear head{p / "head", 64, 10};

  Var operator()(const Var& images) const {
    const Var x = max_pool(relu(first(images)), 2);
    return head(mean(relu(second(x)), {2, 3}));
  }
};

int main() {
  nn::Parameters parameters;
  const Classifier model{parameters};
  same_parameters(parameters);
  const Tensor images = numbers({32, 3, 16, 16}, "images");
  const Tensor labels = classes({32}, "labels", 10);
  const auto optimizer = sgd({.learning_rate = 0.05, .momentum = 0.9});
  LossScaler scaler;
  Tape tape(precise({.kind = PrecisionKind::mixed, .half = DType::f16}));
  for (int step = 0; step < 12; ++step) {
    tape.clear();
    const Var logits = model(tape.constant(images));
    const Var loss = cross_entropy(logits, tape.constant(labels));
    const Gradients gradients = backward(scaler.scale(loss));
    if (scaler.unscale(gradients)) optimizer->step(gradients);
    std::printf("step %d loss %.8g scale %g\n", step, scaler.loss(), scaler.scale());
  }
}
