// A U-Net learns to find discs in noise, within a memory budget.
#include <palimpsest.h>
#include <palimpsest/nn/nn.h>

#include <cstdio>

#include "examples/compared/support.h"

using namespace palimpsest;

struct Level {
  nn::Parameters p;
  std::int64_t inputs, outputs;
  nn::Conv2d first{p / "first", inputs, outputs, 3, {.convolution = {.padding = 1}}};
  nn::GroupNorm first_norm{p / "first_norm", outputs, 4};
  nn::Conv2d second{p / "second", outputs, outputs, 3, {.convolution = {.padding = 1}}};
  nn::GroupNorm second_norm{p / "second_norm", outputs, 4};

  Var operator()(const Var& x) const {
    return silu(second_norm(second(silu(first_norm(first(x))))));
  }
};

struct UNet {
  nn::Parameters p;
  Level fine{p / "fine", 1, 16}, coarse{p / "coarse", 16, 32}, bottom{p / "bottom", 32, 64};
  Level coarse_up{p / "coarse_up", 96, 32}, fine_up{p / "fine_up", 48, 16};
  nn::Conv2d head{p / "head", 16, 1, 1};

  Var operator()(const Var& images) const {
    const Var at_fine = fine(images);
    const Var at_coarse = coarse(max_pool(at_fine, 2));
    const Var at_bottom = bottom(max_pool(at_coarse, 2));
    const Var up = coarse_up(concat({upsample(at_bottom, 2), at_coarse}, 1));
    return head(fine_up(concat({upsample(up, 2), at_fine}, 1)));
  }
};

Var dice_loss(const Var& logits, const Var& masks) {
  const Var found = sigmoid(logits);
  return 1.0 - 2.0 * sum(found * masks) / (sum(found) + sum(masks));
}

int main() {
  nn::Parameters parameters;
  const UNet model{parameters};
  same_parameters(parameters);
  const Discs data = discs(16, 32);
  const auto optimizer = sgd({.learning_rate = 0.02, .momentum = 0.9});
  Tape tape;
  for (int step = 0; step < 10; ++step) {
    tape.clear();
    const Var masks = tape.constant(data.masks);
    const Var logits = model(tape.constant(data.images));
    const Var dice = dice_loss(logits, masks);
    const Gradients gradients =
        backward(bce_with_logits(logits, masks) + dice, {dice}, {.memory_budget = 8_MiB});
    optimizer->step(gradients);
    std::printf("step %d loss %.8g dice %.8g\n", step, gradients.loss().item(),
                gradients.outputs()[0].item());
  }
}
