// Trains a classifier on a file that stays on the disk. Batches are shuffled and made ahead by
// another thread. Writes the file into FOLDER first.
//
//   24_data [FOLDER]
#include <palimpsest.h>
#include <palimpsest/data/data.h>

#include <cmath>
#include <iostream>
#include <numbers>
#include <string>
#include <vector>

using namespace palimpsest;

namespace {

/// Writes noisy points of two spirals, f32 (n, 2), and the spiral of each, i64 (n).
void write_spirals(const std::string& path, std::int64_t n) {
  const Tensor points({n, 2});
  const Tensor labels({n}, DType::i64);
  const Tensor places = Tensor::uniform({n}, /*seed=*/1, 0.2, 1);
  const Tensor noise = Tensor::normal({n, 2}, /*seed=*/2, 0, 0.02);
  for (std::int64_t i = 0; i < n; ++i) {
    const double angle = 3 * std::numbers::pi * (places.at(i) + static_cast<double>(i % 2) / 3);
    const auto at = static_cast<std::size_t>(i);
    const auto coordinate = [&](double direction, std::int64_t axis) {
      return static_cast<float>(places.at(i) * direction + noise.at(2 * i + axis));
    };
    points.data<float>()[2 * at] = coordinate(std::cos(angle), 0);
    points.data<float>()[2 * at + 1] = coordinate(std::sin(angle), 1);
    labels.data<std::int64_t>()[at] = i % 2;
  }
  save_safetensors(path, {{"points", points}, {"labels", labels}});
}

struct Model {
  std::vector<Tensor> weights = {Tensor::normal({2, 64}, /*seed=*/3, 0, 2),    Tensor::zeros({64}),
                                 Tensor::normal({64, 64}, /*seed=*/4, 0, 0.2), Tensor::zeros({64}),
                                 Tensor::normal({64, 2}, /*seed=*/5, 0, 0.2),  Tensor::zeros({2})};

  Var logits(Tape& tape, const Tensor& points) const {
    std::vector<Var> w;
    for (const Tensor& weight : weights) w.push_back(tape.parameter(weight));
    const Var hidden = tanh(linear(tape.constant(points), w[0], w[1]));
    return linear(tanh(linear(hidden, w[2], w[3])), w[4], w[5]);
  }
};

}  // namespace

int main(int count, char** arguments) {
  const std::string path = std::string(count > 1 ? arguments[1] : ".") + "/spirals.safetensors";
  write_spirals(path, 4000);

  const Dataset all = mapped_safetensors(path, {"points", "labels"});
  DataLoader training(all.slice(0, 3000), {.batch_size = 100, .shuffle = true, .seed = 6});
  DataLoader others(all.slice(3000, 1000), {.batch_size = 500});

  Model model;
  const auto optimizer = adam({.learning_rate = 0.01});
  const int epochs = 20;
  {
    ProgressBar progress("train", epochs);
    Tape tape;
    while (training.epoch() < epochs) {
      WeightedMean loss;
      for (const Batch& batch : training) {
        tape.clear();
        const Var logits = model.logits(tape, batch["points"]);
        const Gradients gradients = backward(cross_entropy(logits, tape.constant(batch["labels"])));
        optimizer->step(gradients);
        loss.add(gradients.loss().item(), static_cast<double>(batch.size()));
      }
      progress.show(training.epoch(), "loss " + std::to_string(loss.value()));
    }
  }

  Accuracy accuracy;
  ConfusionMatrix matrix(2);
  for (const Batch& batch : others) {
    Tape tape;
    const Tensor logits = model.logits(tape, batch["points"]).value();
    accuracy.add(logits, batch["labels"]);
    matrix.add(logits, batch["labels"]);
  }
  std::cout << "accuracy " << accuracy.value() << "\nby label and answer " << matrix.value()
            << "\nat most " << format_bytes(training.prefetched_peak()) << " of batches waited\n";
  return accuracy.value() > 0.95 ? 0 : 1;
}
