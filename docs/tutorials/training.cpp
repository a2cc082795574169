// Trains a model of modules on a file of data, saves the run after each epoch, and continues from
// the file after an interruption.
//
//   training [FOLDER]     FOLDER gets the data and the saved run
#include <palimpsest.h>
#include <palimpsest/data/data.h>
#include <palimpsest/nn/nn.h>
#include <palimpsest/strategy/training/training.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <numbers>
#include <string>

using namespace palimpsest;

namespace {

/// Points of two noisy spirals as a CSV file with the columns x, y and spiral.
void write_spirals(const std::string& path, std::int64_t points) {
  const Tensor places = Tensor::uniform({points}, /*seed=*/1, 0.2, 1);
  const Tensor noise = Tensor::normal({points, 2}, /*seed=*/2, 0, 0.05);
  std::ofstream file(path);
  file << "x,y,spiral\n";
  for (std::int64_t i = 0; i < points; ++i) {
    const double angle = 3 * std::numbers::pi * places.at(i) + std::numbers::pi * (i % 2);
    file << places.at(i) * std::cos(angle) + noise.at(2 * i) << ','
         << places.at(i) * std::sin(angle) + noise.at(2 * i + 1) << ',' << i % 2 << '\n';
  }
}

/// A residual block: x + down(gelu(up(norm(x)))).
struct Block {
  Block(nn::Parameters p, std::int64_t width)
      : norm(p / "norm", width),
        up(p / "up", width, 2 * width),
        down(p / "down", 2 * width, width) {}

  Var operator()(const Var& x) const { return x + down(gelu(up(norm(x)))); }

  nn::LayerNorm norm;
  nn::Linear up, down;
};

struct Model {
  explicit Model(nn::Parameters p)
      : first(p / "first", 2, 32),
        blocks(p / "blocks", 3, 32),
        drop(p, 0.05),
        head(p / "head", 32, 2) {}

  Var operator()(const Var& points) const { return head(drop(blocks(gelu(first(points))))); }

  nn::Linear first;
  nn::Stack<Block> blocks;
  nn::Dropout drop;
  nn::Linear head;
};

constexpr int epochs = 8;

/// Everything that a run consists of. Two of these with the same seeds are the same run.
struct Run {
  explicit Run(const std::string& data)
      : all(read_csv(data, {{.name = "points", .columns = {"x", "y"}},
                            {.name = "spiral", .dtype = DType::i64}})),
        training(all.slice(0, 1600), {.batch_size = 64, .shuffle = true, .seed = 6}),
        test(all.slice(1600, 400), {.batch_size = 400}),
        model(parameters) {}

  /// The parts that the file needs, so that a run continues with the same bits.
  std::vector<TrainingPart> parts() {
    return {{"parameters", parameters.named()}, {"optimizer", *optimizer}, {"random", tape}};
  }

  void train_epoch() {
    WeightedMean loss;
    for (const Batch& batch : training) {
      tape.clear();
      optimizer->set_learning_rate(rate(batch.epoch * training.batches() + batch.index));
      const Var logits = model(tape.constant(batch["points"]));
      const Var wrong = cross_entropy(logits, tape.constant(batch["spiral"]));
      Gradients gradients = backward(wrong, {.memory_budget = 256_KiB});
      clip_by_norm(gradients, 1);
      optimizer->step(gradients);
      loss.add(gradients.loss().item(), static_cast<double>(batch.size()));
    }
    std::printf("epoch %d: loss %.4f\n", static_cast<int>(training.epoch()), loss.value());
  }

  double accuracy() {
    parameters.set_training(false);  // no dropout
    Accuracy right;
    for (const Batch& batch : test) {
      Tape other;
      right.add(model(other.constant(batch["points"])).value(), batch["spiral"]);
    }
    parameters.set_training(true);
    return right.value();
  }

  Dataset all;
  DataLoader training, test;
  nn::Parameters parameters{/*seed=*/1};
  Model model;
  std::unique_ptr<Optimizer> optimizer = adamw({.weight_decay = 0.01});
  RateSchedule rate = warm_up({.steps = 25}, cosine_decay({.rate = 5e-3, .steps = 25 * epochs}));
  Tape tape;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const std::string data = folder + "/spirals.csv", saved = folder + "/spirals.run";
  write_spirals(data, 2000);

  Run whole(data);
  std::cout << whole.parameters.elements() << " parameters\n";
  for (int epoch = 0; epoch < epochs; ++epoch) {
    whole.train_epoch();
    if (epoch + 1 == epochs / 2) {
      save_training(saved, whole.parts(), {{"epoch", whole.training.epoch()}});
    }
  }
  std::printf("accuracy %.3f\n", whole.accuracy());

  // Another process does this after an interruption.
  Run resumed(data);
  const DataPosition position = load_training(saved, resumed.parts());
  resumed.training.set_position({.epoch = integer_at(position, "epoch"), .seed = 6});
  std::cout << "continuing after epoch " << integer_at(position, "epoch") << '\n';
  while (resumed.training.epoch() < epochs) resumed.train_epoch();

  bool same = true;
  for (const auto& [name, tensor] : whole.parameters.named()) {
    same = same && same_bits(tensor, resumed.parameters[name].tensor());
  }
  std::cout << (same ? "the resumed run has the same bits\n" : "the resumed run differs\n");
  return same && whole.accuracy() > 0.95 ? 0 : 1;
}
