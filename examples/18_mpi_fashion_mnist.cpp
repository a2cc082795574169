// Trains a convolutional network on Fashion-MNIST in as many processes as `mpirun` starts. Each
// process takes its shard of every batch or, in a pipeline, its stage of the network. A single
// process can train with the same number of shards. The weights have the same bits either way.
//
//   mpirun -n 4 18_mpi_fashion_mnist [--quick] [--pipeline] [--compare | --fast] [--data FOLDER]
//   18_mpi_fashion_mnist --shards 4 [--quick] [--compare] [--data FOLDER]
#include <palimpsest.h>
#include <palimpsest/data/data.h>
#include <palimpsest/strategy/mpi/distributed_execution.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "examples/support/idx.h"

using namespace palimpsest;
using namespace examples;

namespace {

struct Settings {
  std::string data = fashion_mnist_folder;
  std::int64_t batch = 128;
  std::int64_t steps = 468;  ///< one epoch
  std::int64_t test_images = 10'000;
  std::optional<int> shards;  ///< number of shards in a single process
  bool compares = false;      ///< with one process of as many shards or micro-batches
  bool in_order = true;       ///< adds gradients in the order of the ranks
  bool in_stages = false;
};

/// Weights of two convolutions and two dense layers. They are the same on every rank; the first
/// step ensures that in any case.
std::vector<Tensor> first_weights() {
  std::uint64_t seed = 1;
  const auto normal = [&](const Shape& shape, std::int64_t inputs) {
    return Tensor::normal(shape, seed++, 0, std::sqrt(2.0 / static_cast<double>(inputs)));
  };
  return {normal({16, 1, 3, 3}, 9), Tensor::zeros({16}),       normal({32, 16, 3, 3}, 144),
          Tensor::zeros({32}),      normal({1568, 128}, 1568), Tensor::zeros({128}),
          normal({128, 10}, 128),   Tensor::zeros({10})};
}

Var logits_of(std::span<const Var> w, const Var& images) {
  const ConvolutionOptions halves{.stride = 2, .padding = 1};
  const Var edges = relu(conv2d(images, w[0], w[1], halves));
  const Var parts = relu(conv2d(edges, w[2], w[3], halves));
  const Var features = reshape(parts, {images.shape()[0], -1});
  return linear(relu(linear(features, w[4], w[5])), w[6], w[7]);
}

Var loss_of(Tape&, std::span<const Var> weights, std::span<const Var> batch) {
  return cross_entropy(logits_of(weights, batch[0]), batch[1]);
}

using GradientsOf =
    std::function<Gradients(std::span<const Tensor> weights, std::span<const Tensor> batch)>;

/// Trains with the given gradients and returns the final weights. Shows progress unless `label` is
/// empty.
std::vector<Tensor> train(const Settings& settings, const LabelledImages& images,
                          const std::string& label, const GradientsOf& gradients_of) {
  std::optional<ProgressBar> progress;
  if (!label.empty()) progress.emplace(label, settings.steps);
  std::vector<Tensor> weights = first_weights();
  const auto optimizer = adam({.learning_rate = 2e-3});
  for (std::int64_t step = 0; step < settings.steps; ++step) {
    const std::int64_t first = step * settings.batch % (images.size() - settings.batch + 1);
    const LabelledImages batch = images.slice(first, settings.batch);
    const Gradients gradients = gradients_of(weights, std::vector{batch.images, batch.labels});
    optimizer->step(gradients);
    if (progress) progress->show(step + 1, "loss " + std::to_string(gradients.loss().item()));
  }
  return weights;
}

std::vector<Tensor> train_alone(const Settings& settings, const LabelledImages& images,
                                const std::string& label, const ExecutionStrategy& strategy) {
  Execution execution(strategy);
  return train(settings, images, label,
               [&](std::span<const Tensor> weights, std::span<const Tensor> batch) {
                 return execution.gradients(loss_of, weights, batch);
               });
}

std::vector<Tensor> train_shards_alone(const Settings& settings, const LabelledImages& images,
                                       int shards) {
  return train_alone(settings, images, std::to_string(shards) + " shards",
                     {.parallelism = ParallelMode::data_parallel, .workers = shards});
}

std::vector<Tensor> train_by(DistributedExecution& execution, const Settings& settings,
                             const LabelledImages& images, const RankWorld& world) {
  const bool tells = world.rank() == 0;
  std::vector<Tensor> weights =
      train(settings, images, tells ? std::to_string(world.size()) + " ranks" : "",
            [&](std::span<const Tensor> parameters, std::span<const Tensor> batch) {
              return execution.gradients(loss_of, parameters, batch);
            });
  execution.verify(weights);
  return weights;
}

std::vector<Tensor> train_shards(const Settings& settings, const LabelledImages& images,
                                 RankWorld& world) {
  DistributedExecution execution(
      world, {},
      {.deterministic = settings.in_order, .bucket_bytes = 128_KiB, .verify_every = 100});
  std::vector<Tensor> weights = train_by(execution, settings, images, world);
  for (int rank = 0; world.rank() == 0 && rank < world.size(); ++rank) {
    const RankReport& report = execution.reports()[static_cast<std::size_t>(rank)];
    std::printf("rank %d: %d images, %s of gradients in %d buckets, %d begun early; peak %s\n",
                rank, static_cast<int>(report.examples), format_bytes(report.bytes).c_str(),
                report.buckets, report.started_early, format_bytes(report.measured_peak).c_str());
  }
  return weights;
}

constexpr int micro_batches = 8;

std::vector<Tensor> train_stages(const Settings& settings, const LabelledImages& images,
                                 RankWorld& world) {
  DistributedExecution execution(
      world, {.accumulation = micro_batches, .parallelism = ParallelMode::pipeline},
      {.verify_every = 100});
  std::vector<Tensor> weights = train_by(execution, settings, images, world);
  for (int rank = 0; world.rank() == 0 && rank < world.size(); ++rank) {
    const RankReport& report = execution.reports()[static_cast<std::size_t>(rank)];
    std::printf("rank %d: %s in %d messages; peak %s\n", rank, format_bytes(report.bytes).c_str(),
                report.messages, format_bytes(report.measured_peak).c_str());
  }
  return weights;
}

std::uint64_t hash_of(const std::vector<Tensor>& weights) {
  std::uint64_t hash = 0;
  for (const Tensor& weight : weights) {
    const auto bytes = std::as_bytes(weight.data<float>());
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    hash = 31 * hash + std::hash<std::string_view>()(text);
  }
  return hash;
}

double accuracy(const std::vector<Tensor>& weights, const LabelledImages& test) {
  Tape tape;
  std::vector<Var> w;
  for (const Tensor& weight : weights) w.push_back(tape.constant(weight));
  const Tensor answers = argmax(logits_of(w, tape.constant(test.images)), {1}).value();
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < test.size(); ++i) right += answers.at(i) == test.labels.at(i);
  return static_cast<double>(right) / static_cast<double>(test.size());
}

/// Why the settings do not fit together; empty when they do.
std::string refusal(const Settings& settings, const RankWorld& world) {
  if (world.size() > 1 && settings.shards) {
    return "--shards is for a process that is alone; each rank has one";
  }
  if (world.size() == 1 && !settings.in_order) {
    return "--fast is for several ranks; start them by mpirun";
  }
  if (settings.in_stages && (settings.shards || !settings.in_order)) {
    return "--pipeline has neither shards nor another order; leave out --shards and --fast";
  }
  if (settings.compares && !settings.in_order) {
    return "--fast adds in another order than one process does; --compare without it";
  }
  return {};
}

/// Returns false when `--compare` finds different weights.
bool run(const Settings& settings, RankWorld& world) {
  LabelledImages images;
  world.together([&] { images = read_fashion_mnist(settings.data, "train"); });
  const bool is_alone = world.size() == 1;
  const int shards = is_alone ? settings.shards.value_or(1) : world.size();
  const std::vector<Tensor> weights = settings.in_stages ? train_stages(settings, images, world)
                                      : is_alone ? train_shards_alone(settings, images, shards)
                                                 : train_shards(settings, images, world);
  bool holds = true;
  world.together([&] {
    if (world.rank() != 0) return;
    const LabelledImages test = read_fashion_mnist(settings.data, "t10k");
    std::printf("weights %016llx, %.2f %% of the test images right\n",
                static_cast<unsigned long long>(hash_of(weights)),
                100 * accuracy(weights, test.slice(0, settings.test_images)));
    if (!settings.compares) return;
    const auto expected =
        hash_of(settings.in_stages
                    ? train_alone(settings, images, "one process", {.accumulation = micro_batches})
                    : train_shards_alone(settings, images, shards));
    holds = hash_of(weights) == expected;
    std::printf("weights %016llx of one process%s\n", static_cast<unsigned long long>(expected),
                holds ? "" : ", which are others");
  });
  return holds;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--quick") {
      settings.batch = 30;
      settings.steps = 6;
      settings.test_images = 200;
    } else if (flag == "--compare") {
      settings.compares = true;
    } else if (flag == "--pipeline") {
      settings.in_stages = true;
    } else if (flag == "--fast") {
      settings.in_order = false;
    } else if (flag == "--data" && i + 1 < argc) {
      settings.data = argv[++i];
    } else if (flag == "--shards" && i + 1 < argc) {
      settings.shards = std::atoi(argv[++i]);
    } else {
      std::cerr << "usage: 18_mpi_fashion_mnist [--pipeline] [--quick] [--compare] [--fast] "
                   "[--shards N] [--data FOLDER]\n";
      return 2;
    }
  }
  RankWorld world;
  if (const std::string refused = refusal(settings, world); !refused.empty()) {
    if (world.rank() == 0) std::cerr << refused << '\n';
    return 2;
  }
  try {
    return run(settings, world) ? 0 : 1;
  } catch (const Error& error) {
    // Every rank throws an error; the first one that failed reports it.
    if (world.first_failed().value_or(world.rank()) == world.rank()) {
      std::cerr << error.what() << '\n';
    }
    return 1;
  }
}
