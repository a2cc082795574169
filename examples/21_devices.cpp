// Runs a model on two devices, each with its own memory budget: two branches in parallel whose
// outputs are compared at the end. With a file as argument, writes a Chrome trace there.
#include <palimpsest.h>

#include <iostream>

using namespace palimpsest;

namespace {

constexpr std::int64_t width = 128;

Var branch(Tape& tape, std::string_view name, Var state, std::span<const Var> layers) {
  const auto scope = tape.scope(name);
  for (const Var& layer : layers) state = gelu(matmul(state, layer)) + state;
  return state;
}

/// The mean squared difference between the outputs of the image and the text branch.
Var loss_of(Tape& tape, std::span<const Var> layers, std::span<const Var> batch) {
  const Var image = branch(tape, "image", batch[0], layers.first(6));
  const Var text = branch(tape, "text", batch[1], layers.subspan(6));
  const Var error = image - text;
  return mean(error * error);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Tensor> layers;
  for (std::uint64_t k = 0; k < 12; ++k) {
    layers.push_back(Tensor::normal({width, width}, /*seed=*/k, 0, 0.1));
  }
  const std::vector<Tensor> batch{Tensor::uniform({512, width}, 20, -1, 1),
                                  Tensor::uniform({512, width}, 21, -1, 1)};
  Execution on_one;
  const Gradients expected = on_one.gradients(loss_of, layers, batch);

  ExecutionStrategy strategy{.parallelism = ParallelMode::model_parallel,
                             .devices = {{.scopes = {"image"}}, {.scopes = {"text"}}}};
  bool agree = true;
  for (const Bytes budget : {unlimited, 3_MiB}) {
    strategy.devices[1].memory_budget = budget;
    Execution execution(strategy);
    const Gradients gradients = execution.gradients(loss_of, layers, batch);
    const Report& report = gradients.report();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      agree = agree && same_bits(gradients.entries()[i].gradient, expected.entries()[i].gradient);
    }
    for (std::size_t d = 0; d < report.devices.size(); ++d) {
      const Report::Device& device = report.devices[d];
      agree = agree && device.measured_peak <= device.budget;
      std::cout << "device " << d << ", budget "
                << (device.budget == unlimited ? "none" : format_bytes(device.budget)) << ": "
                << format_bytes(device.measured_peak) << ", " << format_bytes(device.incoming)
                << " received" << (device.computes_again ? ", recomputes forward\n" : "\n");
    }
    if (argc > 1) report.write_chrome_trace(argv[1]);
  }
  return agree ? 0 : 1;
}
