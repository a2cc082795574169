// Executes one model in several ways: by each named strategy, and by one read from a file. With a
// folder as argument, writes the strategies there as JSON.
#include <palimpsest.h>

#include <cmath>
#include <iomanip>
#include <iostream>
#include <string>

using namespace palimpsest;

namespace {

constexpr std::int64_t width = 96;

/// Layers of equal width, whose loss is the mean over the examples.
Var loss_of(Tape& tape, std::span<const Var> layers, std::span<const Var> batch) {
  Var state = batch[0];
  for (const Var& layer : layers) {
    const auto scope = tape.scope("layer");
    state = tanh(matmul(state, layer)) + state;
  }
  const Var error = state - batch[1];
  return mean(error * error);
}

struct Row {
  Bytes peak;
  double loss;
};

Row run(const ExecutionStrategy& strategy, std::span<const Tensor> parameters,
        std::span<const Tensor> batch) {
  Execution execution(strategy);
  if (strategy.gradient == GradientMode::none) {
    const Tensor loss = execution.value(loss_of, parameters, batch);
    return {execution.report().measured_peak, loss.item()};
  }
  const Gradients gradients = execution.gradients(loss_of, parameters, batch);
  return {gradients.report().measured_peak, gradients.loss().item()};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Tensor> layers;
  for (std::uint64_t k = 0; k < 8; ++k) {
    layers.push_back(Tensor::normal({width, width}, /*seed=*/k, 0, 0.1));
  }
  const std::vector<Tensor> batch{Tensor::uniform({256, width}, 10, -1, 1),
                                  Tensor::uniform({256, width}, 11, -1, 1)};
  double expected = 0;
  bool agree = true;
  for (NamedStrategy named : named_strategies()) {
    // By default, replicas use the whole machine; two are enough here.
    if (named.strategy.parallelism == ParallelMode::data_parallel) named.strategy.workers = 2;
    const Row row = run(named.strategy, layers, batch);
    if (named.name == "default") expected = row.loss;
    const double tolerance = named.strategy.precision ? 1e-2 * std::abs(expected) : 1e-6;
    agree = agree && std::abs(row.loss - expected) < tolerance;
    std::cout << std::left << std::setw(18) << named.name << std::setw(10) << format_bytes(row.peak)
              << named.strategy.summary() << '\n';
    if (argc > 1) {
      write_strategy(named.strategy,
                     std::string(argv[1]) + "/" + std::string(named.name) + ".json");
    }
  }
  if (argc > 1) {
    const ExecutionStrategy read = read_strategy(std::string(argv[1]) + "/memory-efficient.json");
    agree = agree && run(read, layers, batch).loss == expected;
  }
  return agree ? 0 : 1;
}
