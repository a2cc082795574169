// A vision transformer learns to classify images.
#include <palimpsest.h>
#include <palimpsest/nn/nn.h>
#include <palimpsest/strategy/training/training.h>

#include <cstdio>

#include "examples/compared/support.h"

using namespace palimpsest;

struct Block {
  nn::Parameters p;
  std::int64_t width, heads;
  nn::LayerNorm attention_norm{p / "attention_norm", width}, norm{p / "norm", width};
  nn::Attention attention{p / "attention", width, heads};
  nn::Linear enter{p / "enter", width, 4 * width}, leave{p / "leave", 4 * width, width};

  Var operator()(const Var& x) const {
    const Var y = x + attention(attention_norm(x));
    return y + leave(gelu(enter(norm(y))));
  }
};

struct VisionTransformer {
  nn::Parameters p;
  std::int64_t width = 96, patch = 8, patches = 16;
  nn::Conv2d embed{p / "embed", 3, width, patch, {.convolution = {.stride = patch}}};
  nn::Parameter positions = p.add("positions", {patches, width}, nn::init::zeros(), {});
  nn::Stack<Block> blocks{p / "blocks", 4, width, 4};
  nn::LayerNorm norm{p / "norm", width};
  nn::Linear head{p / "head", width, 10};

  Var operator()(const Var& images) const {
    const Var tokens = transpose(flatten(embed(images), 2)) + positions.on(images);
    return head(mean(norm(blocks(tokens)), {1}));
  }
};

int main() {
  nn::Parameters parameters;
  const VisionTransformer model{parameters};
  same_parameters(parameters);
  const Tensor images = numbers({32, 3, 32, 32}, "images");
  const Tensor labels = classes({32}, "labels", 10);

  const auto optimizer = adamw({.weight_decay = 0.05});
  const RateSchedule rate = warm_up({.steps = 5}, cosine_decay({.rate = 1e-3, .steps = 15}));
  Tape tape;
  for (int step = 0; step < 20; ++step) {
    tape.clear();
    const Var targets = tape.constant(labels);
    const Var logits = model(tape.constant(images));
    const Var loss = cross_entropy(logits, targets, {.label_smoothing = 0.1});
    const Var accuracy = mean(cast(equal(argmax(logits, {1}), targets), DType::f32));
    const Gradients gradients = backward(loss, {accuracy}, {.memory_budget = 16_MiB});
    clip_by_norm(gradients, 1);
    optimizer->set_learning_rate(rate(step));
    optimizer->step(gradients);
    std::printf("step %d loss %.8g accuracy %.8g\n", step, gradients.loss().item(),
                gradients.outputs()[0].item());
  }
}
