// Runs a model in stages on several threads. The gradients are the same as from micro-batches one
// after the other, within a memory budget for all stages together. With a file as argument, writes
// a Chrome trace there.
#include <palimpsest.h>

#include <iomanip>
#include <iostream>

using namespace palimpsest;

namespace {

constexpr std::int64_t width = 128;

/// Residual layers. The loss is the mean over the examples.
Var loss_of(Tape& tape, std::span<const Var> layers, std::span<const Var> batch) {
  Var state = batch[0];
  for (const Var& layer : layers) {
    const auto scope = tape.scope("layer");
    state = gelu(matmul(state, layer)) + state;
  }
  const Var error = state - batch[1];
  return mean(error * error);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Tensor> layers;
  for (std::uint64_t k = 0; k < 12; ++k) {
    layers.push_back(Tensor::normal({width, width}, /*seed=*/k, 0, 0.1));
  }
  const std::vector<Tensor> batch{Tensor::uniform({1024, width}, 20, -1, 1),
                                  Tensor::uniform({1024, width}, 21, -1, 1)};

  ExecutionStrategy strategy{.accumulation = 8,
                             .parallelism = ParallelMode::pipeline,
                             .stages = 3,
                             .run = {.profile = true}};
  Execution one_after_the_other({.accumulation = 8});
  const Gradients expected = one_after_the_other.gradients(loss_of, layers, batch);

  bool agree = true;
  Bytes whole = 0;
  for (const int part : {100, 85, 70}) {
    if (whole > 0) strategy.run.memory_budget = whole * part / 100;
    Execution execution(strategy);
    const Gradients gradients = execution.gradients(loss_of, layers, batch);
    const Report& report = gradients.report();
    if (whole == 0) whole = report.predicted_peak;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      agree = agree && same_bits(gradients.entries()[i].gradient, expected.entries()[i].gradient);
    }
    agree = agree && report.measured_peak <= report.budget;

    std::cout << "budget " << (report.budget == unlimited ? "none" : format_bytes(report.budget))
              << ": " << format_bytes(report.measured_peak) << ", " << std::fixed
              << std::setprecision(0) << 100 * report.compute_overhead << " % extra work\n";
    for (std::size_t s = 0; s < report.stages.size(); ++s) {
      const Report::Stage& stage = report.stages[s];
      std::cout << "  stage " << s << ": " << stage.in_flight << " in flight, "
                << format_bytes(stage.measured_peak)
                << (stage.computes_again ? ", recomputes forward\n" : "\n");
    }
    if (argc > 1) report.write_chrome_trace(argv[1]);
  }
  return agree ? 0 : 1;
}
