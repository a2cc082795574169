// A network within 20 % of the memory that its training step usually takes.
//
//   memory_budget [FOLDER]     FOLDER gets memory_budget.svg and memory_budget.html
#include <palimpsest.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

using namespace palimpsest;

namespace {

constexpr std::int64_t batch = 768, width = 64, classes = 10;
constexpr int blocks = 24;

/// Cross-entropy of a residual network on one batch.
Var record_loss(Tape& tape, const NamedTensors& weights) {
  Var x = tape.constant(Tensor::normal({batch, width}, /*seed=*/1), "input");
  for (int i = 0; i < blocks; ++i) {
    const std::string name = "block" + std::to_string(i);
    const Tape::Scope scope = tape.scope(name);
    const Var up = tape.parameter(weights.at(name + "/up"), "up");
    const Var down = tape.parameter(weights.at(name + "/down"), "down");
    x = x + matmul(gelu(matmul(layer_norm(x), up)), down);
  }
  const Var head = tape.parameter(weights.at("head"), "head");
  const Var labels = tape.constant(remainder(Tensor::arange(batch), double{classes}), "labels");
  return cross_entropy(matmul(x, head), labels);
}

NamedTensors first_weights() {
  NamedTensors weights{{"head", Tensor::normal({width, classes}, /*seed=*/2, 0, 0.1)}};
  for (int i = 0; i < blocks; ++i) {
    const std::string name = "block" + std::to_string(i);
    const auto seed = static_cast<std::uint64_t>(2 * i + 3);
    weights[name + "/up"] = Tensor::normal({width, 4 * width}, seed, 0, 0.1);
    weights[name + "/down"] = Tensor::normal({4 * width, width}, seed + 1, 0, 0.02);
  }
  return weights;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const NamedTensors weights = first_weights();
  Tape tape;
  const Var loss = record_loss(tape, weights);

  // How much does the step take if it keeps everything? Nothing runs here.
  const Bytes everything = plan_backward(loss).keep_all_peak;
  std::cout << "keeping everything: " << format_bytes(everything) << '\n';

  const Gradients reference = backward(loss);
  Chart chart{.title = "One training step at three budgets",
              .x_label = "milliseconds",
              .y_label = "MiB live",
              .curves = {},
              .lines = {}};
  bool same = true;
  for (const int percent : {100, 50, 20}) {
    const Bytes budget = everything * percent / 100;
    const Gradients gradients = backward(loss, {.memory_budget = budget, .profile = true});
    const Report& report = gradients.report();
    std::printf("%3d %%: peak %s, extra work %.1f %%\n", percent,
                format_bytes(report.measured_peak).c_str(), 100 * report.compute_overhead);
    for (const Gradients::Entry& entry : gradients) {
      same = same && same_bits(entry.gradient, reference[entry.parameter]);
    }
    Chart::Curve curve = report.live_bytes_curve();
    curve.label = std::to_string(percent) + " % = " + format_bytes(budget);
    chart.curves.push_back(std::move(curve));
    if (percent == 20) report.write_html(folder + "/memory_budget.html");
  }
  std::cout << (same ? "all gradients have the same bits\n" : "the gradients differ\n");
  std::ofstream(folder + "/memory_budget.svg") << render(chart);

  // Training within 20 %: the plan of the first step serves all later ones.
  const auto optimizer = adam({.learning_rate = 1e-3});
  for (int step = 1; step <= 10; ++step) {
    tape.clear();
    const Gradients gradients =
        backward(record_loss(tape, weights), {.memory_budget = everything / 5});
    optimizer->step(gradients);
    if (step % 5 == 0) std::printf("step %d: loss %.3f\n", step, gradients.loss().item());
  }
  return same ? 0 : 1;
}
