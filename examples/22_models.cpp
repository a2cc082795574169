// Trains a small convolutional model, asks each step for the logits in addition to the gradients,
// and saves and loads the parameters.
#include <cstdio>

#include <palimpsest.h>
#include <palimpsest/nn/nn.h>

using namespace palimpsest;

namespace {

// A model is a plain struct. Its layers add their parameters to the container that they are given.
struct Classifier {
  explicit Classifier(nn::Parameters p)
      : convolution(p / "convolution", 1, 8, 3, {.convolution = {.padding = 1}}),
        norm(p / "norm", 8),
        drop(p, 0.1),
        head(p / "head", 8, 3) {}

  Var operator()(const Var& images) const {
    const Var features = relu(norm(convolution(images)));
    return head(drop(reshape(global_average_pool(features), {-1, 8})));
  }

  nn::Conv2d convolution;
  nn::BatchNormLayer norm;
  nn::Dropout drop;
  nn::Linear head;
};

// Images of noise with a bright row, column or neither; the label says which.
struct Batch {
  Tensor images, labels;
};

Batch make_batch(std::uint64_t seed) {
  Batch batch{Tensor::normal({48, 1, 8, 8}, seed, 0, 0.3), Tensor::zeros({48}, DType::i64)};
  for (std::int64_t i = 0; i < 48; ++i) {
    const std::int64_t label = i % 3;
    batch.labels.data<std::int64_t>()[static_cast<std::size_t>(i)] = label;
    for (std::int64_t k = 0; k < 8 && label < 2; ++k) {
      const std::int64_t pixel = label == 0 ? 64 * i + 8 * (i % 8) + k : 64 * i + 8 * k + i % 8;
      batch.images.data<float>()[static_cast<std::size_t>(pixel)] += 1;
    }
  }
  return batch;
}

double accuracy_of(const Tensor& logits, const Tensor& labels) {
  Tape tape;
  const Var best = argmax(tape.constant(logits), {1});
  return mean(cast(equal(best, tape.constant(labels)), DType::f32)).item();
}

}  // namespace

int main() {
  nn::Parameters parameters(/*seed=*/1);
  const Classifier model(parameters);
  std::printf("%s\n", parameters.summary().c_str());

  const auto optimizer = adamw({.learning_rate = 0.02});
  Tape tape;
  for (std::uint64_t step = 0; step < 60; ++step) {
    tape.clear();  // keeps the memory of the previous step
    const Batch batch = make_batch(step);
    const Var logits = model(tape.constant(batch.images));
    const Var loss = cross_entropy(logits, tape.constant(batch.labels));
    // The logits come from the same run, within the same budget.
    const Gradients gradients = backward(loss, {logits}, {.memory_budget = 1_MiB});
    optimizer->step(gradients);
    if (step % 20 == 19) {
      std::printf("step %2d  loss %.3f  accuracy %.2f\n", static_cast<int>(step) + 1,
                  gradients.loss().item(), accuracy_of(gradients.outputs()[0], batch.labels));
    }
  }

  parameters.save("classifier.safetensors");
  nn::Parameters restored(2);
  const Classifier again(restored);
  restored.load("classifier.safetensors");
  std::remove("classifier.safetensors");
  // No dropout, and the running statistics in place of those of the batch.
  restored.set_training(false);
  const Batch test = make_batch(1000);
  Tape evaluation;
  const Tensor logits = again(evaluation.constant(test.images)).value();
  const double accuracy = accuracy_of(logits, test.labels);
  std::printf("loaded again: accuracy %.2f\n", accuracy);
  return accuracy > 0.8 ? 0 : 1;
}
