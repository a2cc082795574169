// An update from a large batch in the memory of a small one. The gradients of micro-batches of
// unequal sizes are accumulated, clipped and passed to the optimizer.
#include <palimpsest.h>

#include <array>
#include <iostream>
#include <vector>

using namespace palimpsest;

namespace {

constexpr std::int64_t width = 64;
constexpr std::array<std::int64_t, 4> parts = {128, 128, 128, 116};

struct Model {
  Tensor first = Tensor::normal({width, width}, /*seed=*/1, 0, 0.2);
  Tensor second = Tensor::normal({width, 1}, /*seed=*/2, 0, 0.2);

  /// Mean squared error of predicting the sum of the numbers of each example.
  Var loss(Tape& tape, const Tensor& examples) const {
    const Var x = tape.constant(examples);
    Var state = x;
    const Var weight = tape.parameter(first, "first");
    for (int layer = 0; layer < 4; ++layer) state = tanh(matmul(state, weight));
    const Var error = matmul(state, tape.parameter(second, "second")) - sum(x, {1}, true);
    return mean(error * error);
  }
};

Tensor examples_of(std::uint64_t part, std::int64_t count) {
  return Tensor::uniform({count, width}, /*seed=*/part, -0.2, 0.2);
}

}  // namespace

int main() {
  const Model model;
  Tape tape;
  const Bytes at_once = backward(model.loss(tape, examples_of(0, 500))).report().measured_peak;

  GradientAccumulator accumulator({.steps = static_cast<int>(parts.size()),
                                   .normalization = GradientNormalization::weighted,
                                   .clip_norm = 1});
  const auto optimizer = adam({.learning_rate = 1e-3});
  std::vector<double> losses;
  Bytes in_parts = 0;
  for (int update = 0; update < 20; ++update) {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      tape.clear();
      const Var loss = model.loss(tape, examples_of(part, parts[part]));
      if (accumulator.step(backward(loss), parts[part])) {
        const Gradients gradients = accumulator.gradients();  // as from one batch of 500
        optimizer->step(gradients);
        losses.push_back(gradients.loss().item());
        in_parts = gradients.report().measured_peak + accumulator.statistics().buffers;
        accumulator.reset();
      }
    }
  }
  std::cout << "loss " << losses.front() << ", after 20 updates " << losses.back() << '\n'
            << accumulator.statistics().effective_batch << " examples at once take "
            << format_bytes(at_once) << ", in parts, with the buffers, " << format_bytes(in_parts)
            << '\n';
  return losses.back() < losses.front() && in_parts < at_once ? 0 : 1;
}
