// Recovers the conductivity of a rod from its temperature after a million steps.
//
//   million_steps [STEPS [FOLDER]]     FOLDER gets million_steps.svg and holds states during the
//   run
#include <palimpsest.h>
#include <palimpsest/strategy/training/training.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

using namespace palimpsest;

namespace {

constexpr std::int64_t cells = 32, controls = 8;

/// Values at the middle of each cell; x goes from 0 to 1.
template <class F>
Tensor on_cells(F f) {
  const Tensor values({cells}, DType::f64);
  for (std::int64_t i = 0; i < cells; ++i) {
    const double x = (static_cast<double>(i) + 0.5) / static_cast<double>(cells);
    values.data<double>()[static_cast<std::size_t>(i)] = f(x);
  }
  return values;
}

/// The conductivity of each cell: the controls, interpolated and kept positive.
Var conductivity(const Var& c) {
  const Var fine =
      resize(reshape(c, {1, 1, controls}), {cells}, {.interpolation = Interpolation::linear});
  return exp(reshape(fine, {cells}));
}

/// The temperature after `steps` explicit steps of du/dt = d/dx (k du/dx) on a ring. The total time
/// does not depend on the number of steps.
Var temperature(const Var& k, std::int64_t steps, const LoopOptions& loop = {}) {
  const double length = 60.0 / static_cast<double>(steps);
  const Var start = k.tape().constant(
      on_cells([](double x) { return std::sin(6.3 * x) + 0.5 * std::cos(12.6 * x); }));
  return scan(
      start, steps,
      [&](const Var& u, const StepNumber&) {
        const Var flux = k * (roll(u, -1, 0) - u);
        return u + length * (flux - roll(flux, 1, 0));
      },
      loop);
}

/// The curve of one value per cell.
Chart::Curve curve(const std::string& label, const Tensor& values) {
  Chart::Curve result{.label = label, .points = {}, .stepped = false};
  for (std::int64_t i = 0; i < cells; ++i) {
    result.points.emplace_back(static_cast<double>(i), values.at(i));
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const std::string folder = argc > 2 ? argv[2] : ".";
  const RunOptions options{.memory_budget = 1_MiB, .threads = 1};

  // The measurement: the temperature with the conductivity that is to be found.
  const Tensor truth =
      on_cells([](double x) { return 0.3 + 0.2 * std::exp(-60 * (x - 0.4) * (x - 0.4)); });
  Tape tape;
  const Var reached = temperature(tape.constant(truth), steps);
  evaluate({&reached, 1}, options);
  const Tensor measured = reached.value();

  // The misfit and its gradient are recorded, differentiated and planned once.
  const Tensor found = Tensor::full({controls}, std::log(0.3), DType::f64);
  const auto record = [&](Tape& recorded) {
    const Var k = conductivity(recorded.parameter(found, "controls"));
    return 1e3 * mse(temperature(k, steps, {.spill = folder}), recorded.constant(measured));
  };
  Runner runner(Program::gradients(record, options));
  const auto gradients = [&] {
    runner.run();  // with the current elements of `found`
    return runner.gradients();
  };
  const auto current = [&] {
    Tape other;
    return conductivity(other.constant(found)).value();
  };

  Chart chart{.title = "Conductivity of the rod",
              .x_label = "cell",
              .y_label = "conductivity",
              .curves = {curve("true", truth), curve("at the start", current())},
              .lines = {}};
  const double error_before = norm(current() - truth).item();
  minimize_lbfgs(gradients, {.iterations = 12, .watch = [](const LbfgsIteration& now) {
                               std::printf("iteration %2d: misfit %.2e\n", now.iteration,
                                           now.value);
                             }});
  const double error = norm(current() - truth).item() / error_before;
  std::printf("the error of the conductivity is %.3f of that at the start\n", error);
  std::printf("peak of a gradient %s; all states take %s\n",
              format_bytes(runner.report().measured_peak).c_str(),
              format_bytes(steps * truth.bytes()).c_str());
  chart.curves.push_back(curve("found", current()));
  std::ofstream(folder + "/million_steps.svg") << render(chart);
  return error < 0.3 ? 0 : 1;
}
