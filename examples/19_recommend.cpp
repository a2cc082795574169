// Which strategy is fastest within the available memory? Estimates all candidates for shrinking
// memory and takes one step with a recommended strategy. With a file as argument, keeps the
// measured rates of this machine there.
#include <palimpsest.h>

#include <iostream>
#include <string>

using namespace palimpsest;

namespace {

constexpr std::int64_t width = 256;
constexpr std::int64_t examples = 2048;

/// Layers of equal width, whose loss is the mean over the examples.
Var loss_of(Tape&, std::span<const Var> layers, std::span<const Var> batch) {
  Var state = batch[0];
  for (const Var& layer : layers) state = tanh(matmul(state, layer)) + state;
  const Var error = state - batch[1];
  return mean(error * error);
}

}  // namespace

int main(int argc, char** argv) {
  RecommendOptions options;
  if (argc > 1) options.rates.machine = measured_machine(argv[1]);

  // Shapes are enough for an estimate.
  Workload workload{.model = loss_of,
                    .parameters = std::vector<Tensor>(8, Tensor({width, width})),
                    .batch = {Tensor({examples, width}), Tensor({examples, width})}};
  options.memory = 64_MiB;
  const Recommendation ample = recommend(workload, options);
  std::cout << "64 MiB:\n" << ample;

  options.memory = 12_MiB;
  const Recommendation tight = recommend(workload, options);
  std::cout << "\n12 MiB:\n" << tight;

  options.memory = 1_MiB;
  try {
    recommend(workload, options);
    return 1;
  } catch (const BudgetError& error) {
    std::cout << "\n1 MiB:\n" << error.what() << '\n';
  }

  std::vector<Tensor> layers;
  for (std::uint64_t k = 0; k < 8; ++k) {
    layers.push_back(Tensor::normal({width, width}, /*seed=*/k, 0, 0.06));
  }
  const std::vector<Tensor> batch{Tensor::uniform({examples, width}, 10, -1, 1),
                                  Tensor::uniform({examples, width}, 11, -1, 1)};
  Execution execution(tight.strategy);
  const Report report = execution.gradients(loss_of, layers, batch).report();
  std::cout << "\na step by that of 12 MiB took " << format_bytes(report.measured_peak) << '\n';
  return report.measured_peak <= 12_MiB ? 0 : 1;
}
