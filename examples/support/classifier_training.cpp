#include "examples/support/classifier_training.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <palimpsest/data/data.h>

namespace examples {

using namespace palimpsest;

namespace {

/// Mean and standard deviation of the pixels of the training images.
constexpr double pixel_mean = 0.2860;
constexpr double pixel_deviation = 0.3530;

/// Mirrors half of the images. Which ones depends on the place of the batch alone.
void mirror_some(Batch& batch) {
  const Tensor& images = batch.tensors[0];
  const std::int64_t side = images.shape()[3];
  const std::span<float> pixels = images.data<float>();
  std::mt19937_64 random(static_cast<std::uint64_t>(batch.epoch << 32 | batch.index));
  bool mirrors = false;
  for (std::int64_t row = 0; row < images.elements() / side; ++row) {
    if (row % side == 0) mirrors = random() % 2 == 1;
    const auto first = pixels.begin() + row * side;
    if (mirrors) std::reverse(first, first + side);
  }
}

/// Wall time and processor time since its construction.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double processor_seconds() const {
    return static_cast<double>(std::clock() - processor_start_) / CLOCKS_PER_SEC;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::clock_t processor_start_ = std::clock();
};

Dataset first_images(const ClassifierOptions& options, const std::string& part,
                     std::int64_t count) {
  const LabelledImages all = read_fashion_mnist(options.data, part);
  return in_memory({{"images", all.images}, {"labels", all.labels}}).slice(0, count);
}

/// The results of one epoch.
struct EpochResult {
  WeightedMean loss;
  Accuracy accuracy;  ///< of the training images, while the weights change
  Bytes peak = 0;     ///< of a step
};

class ClassifierTraining {
 public:
  ClassifierTraining(const ClassifierOptions& options, const MakeTask& make_task)
      : options_(options),
        images_(first_images(options, "train", options.images), {.batch_size = options.batch,
                                                                 .shuffle = true,
                                                                 .seed = 1,
                                                                 .drop_last = true,
                                                                 .transform = mirror_some}),
        test_images_(first_images(options, "t10k", options.test_images),
                     {.batch_size = options.batch}),
        task_(make_task(options.epochs * images_.batches())) {}

  /// Returns whether the required accuracy is reached, or true if it stops early.
  bool run() {
    std::printf("%lld parameters, %lld steps in an epoch\n",
                static_cast<long long>(task_.parameters.elements()),
                static_cast<long long>(images_.batches()));
    continue_from_file();
    std::optional<double> tested;
    for (std::int64_t done = 0; images_.epoch() < options_.epochs; ++done) {
      if (options_.stop_after > 0 && done == options_.stop_after) return true;
      tested = run_epoch();
      if (!options_.state.empty()) save_training(options_.state, parts(), position());
    }
    const double accuracy = tested ? *tested : test();
    std::printf("test accuracy %.2f %%, required %.2f %%\n", accuracy, options_.required);
    return accuracy >= options_.required;
  }

 private:
  std::vector<TrainingPart> parts() {
    return {{"parameters", task_.parameters}, {"optimizer", *task_.optimizer}, {"random", tape_}};
  }

  DataPosition position() const { return {{"epoch", images_.epoch()}, {"settings", settings()}}; }

  /// A run must have the settings of the one that it continues.
  std::string settings() const {
    return std::to_string(options_.epochs) + " epochs of " + std::to_string(options_.images) +
           " images in batches of " + std::to_string(options_.batch);
  }

  void continue_from_file() {
    if (options_.state.empty() || !std::filesystem::exists(options_.state)) return;
    const DataPosition saved = load_training(options_.state, parts());
    if (text_at(saved, "settings") != settings()) {
      throw ArgumentError(options_.state + " is the state of " + text_at(saved, "settings") +
                          ", but this run has " + settings() +
                          "; give the same options or remove the file");
    }
    images_.set_position({.epoch = integer_at(saved, "epoch"), .seed = images_.position().seed});
    std::printf("continuing %s after epoch %lld\n", options_.state.c_str(),
                static_cast<long long>(images_.epoch()));
  }

  Var record_logits(Tape& tape, const Batch& batch) const {
    return task_.logits((tape.constant(batch["images"]) - pixel_mean) * (1 / pixel_deviation));
  }

  EpochResult train_epoch() {
    EpochResult result;
    ProgressBar progress("epoch " + std::to_string(images_.epoch() + 1), images_.batches());
    for (const Batch& batch : images_) {
      tape_.clear();
      task_.optimizer->set_learning_rate(task_.rate(batch.epoch * images_.batches() + batch.index));
      const Var logits = record_logits(tape_, batch);
      const Var loss = cross_entropy(logits, tape_.constant(batch["labels"]));
      const Gradients gradients = backward(loss, {logits}, {.memory_budget = options_.budget});
      task_.optimizer->step(gradients);
      result.loss.add(gradients.loss());
      result.accuracy.add(gradients.outputs()[0], batch["labels"]);
      result.peak = std::max(result.peak, gradients.report().measured_peak);
      char text[40];
      std::snprintf(text, sizeof text, "loss %.3f", result.loss.value());
      progress.show(batch.index + 1, text);
    }
    tape_.clear();
    return result;
  }

  /// In percent.
  double test() {
    task_.parameters.set_training(false);
    Accuracy accuracy;
    Tape tape;
    for (const Batch& batch : test_images_) {
      tape.clear();
      const Var logits = record_logits(tape, batch);
      evaluate(std::array{logits}, {.memory_budget = options_.budget});
      accuracy.add(logits.value(), batch["labels"]);
    }
    task_.parameters.set_training(true);
    return 100 * accuracy.value();
  }

  /// Returns the test accuracy in percent.
  double run_epoch() {
    const Stopwatch watch;
    const EpochResult result = train_epoch();
    const double accuracy = test();
    std::printf(
        "epoch %2lld of %lld: loss %.4f, accuracy %.2f %%, test accuracy %.2f %%, peak %s, "
        "%.1f s, processor %.1f s\n",
        static_cast<long long>(images_.epoch()), static_cast<long long>(options_.epochs),
        result.loss.value(), 100 * result.accuracy.value(), accuracy,
        format_bytes(result.peak).c_str(), watch.seconds(), watch.processor_seconds());
    return accuracy;
  }

  ClassifierOptions options_;
  DataLoader images_;
  DataLoader test_images_;
  ClassifierTask task_;
  Tape tape_;
};

}  // namespace

int classifier_main(int argc, char** argv, const ClassifierOptions& defaults,
                    const MakeTask& make_task) {
  const auto options = parse_classifier_options(argc, argv, defaults);
  if (!options) return 2;
  // Line buffering shows the output of a long run immediately, also through a pipe.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return ClassifierTraining(*options, make_task).run() ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace examples
