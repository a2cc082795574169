// Recovers the conductivity of a plate at every point from thermometers at its rim. The readings
// have no errors here.
//
// The temperature u of n × n cells obeys ∂u/∂t = ∇·(k∇u); no heat leaves the plate. D is the sparse
// matrix of differences across the faces between cells, and M that of means. A step of length τ is
//
//   u ← u − τ·Dᵀ·((M·k)∘(D·u)).
//
// Steps of equal length would have to be so short that 2,000 of them carry heat over only about 30
// cells. The program uses cycles of steps of different lengths (Alexiades, Amiez and Gremaud,
// 1996). Most of these steps are too long on their own, but a cycle is stable as a whole and
// carries heat four times as far. The lengths are an input of the loop: `scan` passes one of them
// to each step.
//
//   10_heat_inverse [--quick] [--output FOLDER]
#include <palimpsest.h>
#include <palimpsest/strategy/training/training.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <numbers>

#include "examples/support/fields.h"
#include "examples/support/objective.h"
#include "examples/support/panels.h"
#include "examples/support/program_main.h"

using namespace palimpsest;
using namespace examples;

namespace {

constexpr double lowest = 0.3;  // bounds of the conductivity
constexpr double highest = 2.0;
constexpr double typical = 0.9;  // of the plate; the search starts from it

struct Settings {
  std::int64_t cells = 256;    ///< along each side
  std::int64_t controls = 10;  ///< along each side, for interpolating the conductivity
  std::int64_t cycles = 50;
  std::int64_t cycle = 40;  ///< steps per cycle
  int iterations = 30;
  Bytes budget = 64_MiB;

  std::int64_t steps() const { return cycles * cycle; }
};

/// The conductivity to recover: a plate with two good conductors and one bad conductor in it.
double true_conductivity(double y, double x) {
  return typical + 0.9 * hump(y, x, 0.3, 0.3, 0.15) + 0.6 * hump(y, x, 0.65, 0.78, 0.12) -
         0.5 * hump(y, x, 0.72, 0.3, 0.16);
}

double start_temperature(double y, double x) {
  constexpr double pi = std::numbers::pi;
  return hump(y, x, 0.5, 0.5, 0.2) + 0.5 * std::cos(3 * pi * y) * std::cos(2 * pi * x);
}

/// One row for each face between two of the n × n cells, with an entry for each of both cells.
SparsePattern faces_of(std::int64_t n) {
  std::vector<std::int32_t> cells;
  const auto add_face = [&](std::int64_t a, std::int64_t b) {
    cells.push_back(static_cast<std::int32_t>(a));
    cells.push_back(static_cast<std::int32_t>(b));
  };
  for (std::int64_t i = 0; i < n * n; ++i) {
    if (i % n < n - 1) add_face(i, i + 1);
    if (i / n < n - 1) add_face(i, i + n);
  }
  std::vector<std::int64_t> starts;
  for (std::int64_t start = 0; start <= std::ssize(cells); start += 2) starts.push_back(start);
  const std::int64_t faces = std::ssize(starts) - 1;
  return SparsePattern(faces, n * n, std::move(starts), std::move(cells));
}

/// The values of D: −1, 1, −1, 1, …
Tensor differences(std::int64_t entries) {
  const Tensor values({entries}, DType::f64);
  for (std::size_t i = 0; auto& value : values.data<double>()) value = i++ % 2 == 0 ? -1 : 1;
  return values;
}

/// Lengths of all steps, equal in each cycle, for conductivities up to `highest`.
Tensor step_lengths(const Settings& settings) {
  constexpr double longest_alone = 0.25 / highest;
  constexpr double damping = 0.001;
  const std::int64_t n = settings.cycle;
  const Tensor lengths({settings.steps()}, DType::f64);
  for (std::int64_t i = 0; auto& length : lengths.data<double>()) {
    // Mix long and short steps, so that rounding errors do not grow far before they are damped.
    const auto j = static_cast<double>(7 * i++ % n);
    const double angle = (2 * j + 1) * std::numbers::pi / static_cast<double>(2 * n);
    length = longest_alone / (1 + damping - (1 - damping) * std::cos(angle));
  }
  return lengths;
}

/// Indices of cells at the rim, sixteen along each side.
Tensor thermometers(std::int64_t n) {
  std::vector<std::int64_t> cells;
  for (std::int64_t k = 0; k < n; k += n / 16) {
    const std::int64_t at = k + n / 32;
    for (const std::int64_t cell : {at, (n - 1) * n + at, at * n, at * n + n - 1}) {
      cells.push_back(cell);
    }
  }
  return Tensor::from(cells, {std::ssize(cells)});
}

/// The conductivity field: the controls, interpolated and mapped to the range between the bounds.
Var conductivity_of(const Var& controls, std::int64_t n) {
  const std::int64_t c = controls.shape()[0];
  const Var fine =
      resize(reshape(controls, {1, 1, c, c}), {n, n}, {.interpolation = Interpolation::linear});
  return lowest + (highest - lowest) * sigmoid(reshape(fine, {n * n}));
}

/// The readings of the thermometers at the end of each cycle.
Var readings_of(const Var& conductivity, const Settings& settings) {
  Tape& tape = conductivity.tape();
  const std::int64_t n = settings.cells;
  const SparsePattern faces = faces_of(n);
  const Var difference = tape.constant(differences(faces.entries()));
  const Var half = tape.constant(Tensor::full({faces.entries()}, 0.5, DType::f64));
  const Var cells = tape.constant(thermometers(n));
  const Var start = tape.constant(field(n, start_temperature).reshape({n * n}));
  const Var lengths = tape.constant(step_lengths(settings));

  const Var of_faces = sparse_matmul(faces, half, conductivity);
  const LoopResult result =
      scan({&start, 1}, settings.steps(), {&lengths, 1},
           [&](std::span<const Var> state, std::span<const Var> inputs, const StepNumber&) {
             const Var& u = state[0];
             const Var flux = of_faces * sparse_matmul(faces, difference, u);
             const Var next =
                 u - inputs[0] * sparse_matmul(faces, difference, flux, {.transpose = true});
             return LoopStep{.state = {next}, .outputs = {index_select(next, 0, cells)}};
           });
  return slice(result.outputs[0], 0, {.start = settings.cycle - 1, .step = settings.cycle});
}

bool run(const Arguments& arguments) {
  Settings settings;
  if (arguments.quick) settings = {.cells = 64, .cycles = 3, .iterations = 8, .budget = 3_MiB};
  const std::int64_t n = settings.cells;
  const Tensor truth = field(n, true_conductivity);
  Tape tape;
  const Tensor measured = readings_of(tape.constant(truth.reshape({n * n})), settings).value();

  // Record, differentiate and plan once, for all iterations.
  const double start = std::log((typical - lowest) / (highest - typical));
  const Tensor first = Tensor::full({settings.controls, settings.controls}, start, DType::f64);
  Var controls;
  const auto record = [&](Tape& recorded) {
    controls = recorded.parameter(first, "controls");
    const Var readings = readings_of(conductivity_of(controls, n), settings);
    return mse(readings, recorded.constant(measured));
  };
  const Bytes keep_all = Program::gradients(record).plan().keep_all_peak;
  Runner runner(Program::gradients(record, {.memory_budget = settings.budget}));
  const Objective misfit = objective_of(runner, controls);
  const auto found = [&](const Tensor& x) {
    Tape other;
    return conductivity_of(other.constant(x), n).value().reshape({n, n});
  };
  const Claim right = check_gradient(misfit, first, 1e-3);

  Plot errors{"relative error of the result", "iterations", {{"", {}}}};
  const Tensor x = first.clone();
  minimize_lbfgs({x}, misfit,
                 {.iterations = settings.iterations, .watch = [&](const LbfgsIteration& now) {
                    const double error = distance(found(x), truth) / distance(found(first), truth);
                    std::printf("iteration %2d, misfit %.3e, error %.4f\n", now.iteration,
                                now.value, error);
                    errors.curves[0].points.emplace_back(now.iteration, error);
                  }});
  const Report report = runner.report();
  std::cout << report << "keeping every step would take " << format_bytes(keep_all) << '\n';
  write_file(arguments.output + "/10_heat_inverse.svg",
             draw(std::vector<Panel>{HeatMap{"true conductivity", truth, lowest, highest},
                                     HeatMap{"recovered from the rim", found(x), lowest, highest},
                                     errors}));
  const double error = errors.curves[0].points.back().second;
  return all_hold({right,
                   {report.measured_peak <= settings.budget, "the peak is within the budget"},
                   {error < (arguments.quick ? 0.5 : 0.3), "the conductivity is found"}});
}

}  // namespace

int main(int argc, char** argv) { return program_main(argc, argv, run); }
