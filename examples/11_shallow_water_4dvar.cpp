// Recovers the initial state of a basin of water from a few gauges that were read, with errors,
// every 50 of 5,000 steps. This is 4D-Var, which weather forecasts use to find their initial state.
// At the end, computes one gradient again in half the memory, with states on disk.
//
// The initial state is made by smoothing numbers χ that are independent a priori. The program
// minimises
//
//   J(χ) = ½·|χ|² + ½·Σ ((reading − water there and then)/error)².
//
//   11_shallow_water_4dvar [--quick] [--output FOLDER]
#include <palimpsest.h>
#include <palimpsest/strategy/training/training.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <numbers>
#include <string>

#include "examples/support/fields.h"
#include "examples/support/objective.h"
#include "examples/support/panels.h"
#include "examples/support/program_main.h"
#include "examples/support/shallow_water.h"

using namespace palimpsest;
using namespace examples;

namespace {

constexpr double reading_error = 0.002;

struct Settings {
  std::int64_t cells = 128;  ///< along each side
  std::int64_t steps = 5000;
  std::int64_t pause = 50;   ///< steps from one reading to the next
  std::int64_t gauges = 64;  ///< scattered over the basin
  int iterations = 30;
  Bytes budget = 48_MiB;
  std::string disk = {};  ///< folder for states that do not fit in memory
};

/// Heights at the gauges after every step, (steps, gauges).
Var heights_of(const Water& start, const Tensor& gauges, const Settings& settings) {
  const Var cells = start[0].tape().constant(gauges);
  const LoopResult run =
      scan(start, settings.steps, {},
           [&](std::span<const Var> water, std::span<const Var>, const StepNumber&) {
             const Water next = shallow_water_step(water);
             return LoopStep{.state = next, .outputs = {index_select(flatten(next[0]), 0, cells)}};
           },
           {.spill = settings.disk});
  return run.outputs[0];
}

/// The heights at the steps when the gauges are read.
Var readings_of(const Var& heights, const Settings& settings) {
  return slice(heights, 0, {.start = settings.pause - 1, .step = settings.pause});
}

/// Height and speeds from χ, (3, n, n): smoothed by diffusion over a twentieth of the basin and
/// scaled to a standard deviation of 0.05.
Water start_of(const Var& chi) {
  const auto steps = static_cast<int>(chi.shape()[1] * chi.shape()[1] / 200);
  constexpr double rate = 0.2;
  const double scale = 0.05 * std::sqrt(4 * std::numbers::pi * 2 * rate * steps);
  Water start;
  for (int field = 0; field < 3; ++field) {
    Var x = select(chi, 0, field);
    for (int n = 0; n < steps; ++n) x = x + rate * laplacian(x);
    start.push_back(scale * x);
  }
  return start;
}

/// The state to recover: an eddy whose rotation balances its pressure, and a hill of water at rest.
std::vector<Tensor> true_start(std::int64_t n) {
  constexpr double radius = 0.12;
  const auto eddy = [](double y, double x) { return 0.1 * hump(y, x, 0.35, 0.4, radius); };
  const double speed = 2 / (radius * radius * static_cast<double>(n) * water_rotation);
  return {
      field(n, [&](double y, double x) { return eddy(y, x) + 0.08 * hump(y, x, 0.7, 0.7, 0.1); }),
      field(n, [&](double y, double x) { return speed * (y - 0.35) * eddy(y, x); }),
      field(n, [&](double y, double x) { return -speed * (x - 0.4) * eddy(y, x); })};
}

/// Evaluates the initial state that belongs to χ.
std::vector<Tensor> water_of(const Tensor& chi) {
  Tape tape;
  std::vector<Tensor> fields;
  for (const Var& field : start_of(tape.constant(chi))) fields.push_back(field.value());
  return fields;
}

/// The first gauge in the first 1,000 steps, from heights taken every `pause` steps.
Plot::Curve series(const std::string& label, const Tensor& heights, std::int64_t pause) {
  Plot::Curve curve{.label = label, .points = {}, .dots = pause > 1};
  for (std::int64_t i = 0; i < std::min(heights.shape()[0], 1000 / pause); ++i) {
    curve.points.emplace_back((i + 1) * pause, heights.at(i * heights.shape()[1]));
  }
  return curve;
}

bool run(const Arguments& arguments) {
  Settings settings;
  if (arguments.quick) {
    settings = {.cells = 24, .steps = 200, .pause = 10, .iterations = 8, .budget = 1_MiB};
  }
  const std::int64_t n = settings.cells;
  const Tensor gauges =
      Tensor::uniform({settings.gauges}, 5, 0, static_cast<double>(n * n)).to(DType::i64);
  const std::vector<Tensor> truth = true_start(n);
  Tape real;
  Water water;
  for (const Tensor& field : truth) water.push_back(real.constant(field));
  const Var exact = readings_of(heights_of(water, gauges, settings), settings);
  const Tensor noise = Tensor::normal(exact.shape(), 6, 0, reading_error, DType::f64);
  const Tensor readings = (exact + real.constant(noise)).value();

  Var chi;
  const Tensor first = Tensor::zeros({3, n, n}, DType::f64);
  const auto record = [&](Tape& tape) {
    chi = tape.parameter(first, "chi");
    const Var shown = readings_of(heights_of(start_of(chi), gauges, settings), settings);
    const Var misfit = (shown - tape.constant(readings)) / reading_error;
    return 0.5 * (sum(chi * chi) + sum(misfit * misfit));
  };
  const Bytes keep_all = Program::gradients(record).plan().keep_all_peak;
  Runner runner(Program::gradients(record, {.memory_budget = settings.budget}));
  const Objective cost = objective_of(runner, chi);
  const Claim right = check_gradient(cost, first, 1e-2);

  Plot errors{"relative errors", "iterations", {{"height", {}}, {"speed to the east", {}}}};
  const Tensor last = first.clone();
  minimize_lbfgs({last}, cost,
                 {.iterations = settings.iterations, .watch = [&](const LbfgsIteration& now) {
                    const std::vector<Tensor> found = water_of(last);
                    std::printf("iteration %2d, J %.4e, relative errors", now.iteration, now.value);
                    for (std::size_t i = 0; i < 2; ++i) {
                      const double error = distance(found[i], truth[i]) /
                                           distance(Tensor::zeros({n, n}, DType::f64), truth[i]);
                      errors.curves[i].points.emplace_back(now.iteration, error);
                      std::printf(" %.3f", error);
                    }
                    std::printf("\n");
                  }});
  const Report report = runner.report();
  std::cout << report << "keeping every step would take " << format_bytes(keep_all) << "\n\n";

  const Tensor gradient = cost({&last, 1}).gradients[0];
  settings.disk = arguments.output;
  Runner on_disk(Program::gradients(record, {.memory_budget = settings.budget / 2}));
  const bool same = same_bits(objective_of(on_disk, chi)({&last, 1}).gradients[0], gradient);
  std::cout << on_disk.report() << '\n';

  const std::vector<Tensor> found = water_of(last);
  const Var heights = heights_of(start_of(real.constant(last)), gauges, settings);
  const Plot gauge{"height at one gauge",
                   "steps",
                   {series("found", heights.value(), 1), series("read", readings, settings.pause)}};
  HeatMap height{"true height, and the gauges", truth[0], -0.05, 0.1};
  for (std::int64_t i = 0; i < settings.gauges; ++i) {
    const auto cell = gauges.data<std::int64_t>()[static_cast<std::size_t>(i)];
    height.marks.emplace_back(cell / n, cell % n);
  }
  write_file(arguments.output + "/11_shallow_water_4dvar.svg",
             draw(std::vector<Panel>{height, HeatMap{"found", found[0], -0.05, 0.1}, gauge,
                                     HeatMap{"true speed to the east", truth[1], -0.07, 0.07},
                                     HeatMap{"found", found[1], -0.07, 0.07}, errors}));
  const double error = errors.curves[0].points.back().second;
  return all_hold({right,
                   {report.measured_peak <= settings.budget, "the peak is within the budget"},
                   {same, "states on disk make the same bits of the gradient in half the memory"},
                   {error < (arguments.quick ? 0.5 : 0.2), "the height is found"}});
}

}  // namespace

int main(int argc, char** argv) { return program_main(argc, argv, run); }
