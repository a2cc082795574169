// The gradient through an ODE solver that chooses its own step sizes: the Runge-Kutta pair of
// orders 5 and 4 of Dormand and Prince (1980) as a `while_loop`. The number of steps depends on
// values. So does the length of each step, which is part of the state.
//
// A planet starts where its orbit is nearest to the sun, at distance r and with transverse speed v,
// and flies for one period P. It comes back to where it started. But r and v change the period:
// when the period grows by dP, the planet is late and its transverse position is y = −v·dP. With
// 1/a = 2/r − v² and P = 2π·a^(3/2) the exact derivatives are dy/dv = −6π·v²·a^(5/2), dy/dr =
// −6π·v·a^(5/2)/r².
//
//   13_adaptive_ode [--quick] [--output FOLDER]
#include <palimpsest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "examples/support/panels.h"
#include "examples/support/program_main.h"

using namespace palimpsest;
using namespace examples;

namespace {

constexpr double nearest = 0.1;  // with a = 1, an eccentricity of 0.9
const double fastest = std::sqrt(2 / nearest - 1);
constexpr double period = 2 * std::numbers::pi;

/// The time derivative of `s`, whose rows are position and velocity.
Var motion(const Var& s) {
  const Var place = select(s, 0, 0);
  const Var distance = sqrt(sum(place * place));
  return stack({select(s, 0, 1), -place / (distance * distance * distance)}, 0);
}

/// The result of a step of length h from s, and its distance from the result of the method of order
/// 4.
struct Attempt {
  Var next;
  Var error;
};

Attempt dormand_prince(const Var& s, const Var& h) {
  using Weights = std::vector<double>;
  static const Weights stages[] = {
      {1. / 5},
      {3. / 40, 9. / 40},
      {44. / 45, -56. / 15, 32. / 9},
      {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
      {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
      {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84}};
  static const Weights difference = {71. / 57600,      0,         -71. / 16695, 71. / 1920,
                                     -17253. / 339200, 22. / 525, -1. / 40};

  std::vector<Var> slopes = {motion(s)};
  const auto combined = [&](const Weights& weights) {
    Var total = weights[0] * slopes[0];
    for (std::size_t i = 1; i < weights.size(); ++i) total = total + weights[i] * slopes[i];
    return h * total;
  };
  Var next;
  for (const Weights& weights : stages) {
    next = s + combined(weights);
    slopes.push_back(motion(next));
  }
  return {next, max(abs(combined(difference)))};
}

struct Solver {
  double tolerance;
  /// Whether to differentiate through the step lengths as well. These affect only the error of the
  /// solution, and their derivatives only the error of the gradient.
  bool through_lengths;

  /// Attempts one step. The state is the time, the length to try, and position and velocity. If the
  /// error is too large, time and position stay as they are and the next attempt is shorter.
  LoopStep step(std::span<const Var> state) const {
    const Var& time = state[0];
    const Var tried = through_lengths ? state[1] : stop_gradient(state[1]);
    const Var h = minimum(tried, period - time);
    const auto [next, error] = dormand_prince(state[2], h);
    const Var good = error <= tolerance;
    // Without this lower bound an error of 0 would make the derivatives NaN.
    const Var factor = 0.9 * pow(tolerance / maximum(error, 1e-4 * tolerance), 0.2);
    const std::vector<Var> after = {where(good, time + h, time), h * clamp(factor, 0.2, 5.0),
                                    where(good, next, state[2])};
    return {.state = after, .outputs = after};
  }
};

struct Flight {
  std::int64_t steps = 0;
  double by_distance = 0;
  double by_speed = 0;
  std::vector<Tensor> path;  ///< time, next length, position and velocity after each attempt

  /// The larger of the relative errors of both derivatives.
  double error() const {
    const double wanted = -6 * std::numbers::pi * fastest;
    return std::max(std::abs(by_speed / (wanted * fastest) - 1),
                    std::abs(by_distance / (wanted / (nearest * nearest)) - 1));
  }
};

Flight fly(Tape& tape, const Solver& solver) {
  const auto scalar = [](double value) { return Tensor::scalar(value, DType::f64); };
  const Var distance = tape.parameter(scalar(nearest), "distance");
  const Var speed = tape.parameter(scalar(fastest), "speed");
  const Var zero = tape.constant(scalar(0));
  const std::vector<Var> start = {zero, tape.constant(scalar(1e-3)),
                                  reshape(stack({distance, zero, zero, speed}, 0), {2, 2})};
  const LoopBody body = [&](std::span<const Var> state, std::span<const Var>, const StepNumber&) {
    return solver.step(state);
  };
  const WhileResult end = while_loop(
      start, [](std::span<const Var> state, const StepNumber&) { return state[0] < period; }, body);
  const Var y = select(flatten(end.state[2]), 0, 1);
  const Gradients gradients = backward(y, {.memory_budget = 64_KiB});

  Flight flight{.steps = end.steps.item<std::int64_t>(),
                .by_distance = gradients[distance].item(),
                .by_speed = gradients[speed].item(),
                .path = {}};
  // Now that the number of steps is known, `scan` can return the outputs of each step.
  for (const Var& output : scan(start, flight.steps, {}, body).outputs) {
    flight.path.push_back(output.value());
  }
  return flight;
}

std::string picture_of(const Flight& flight, const Plot& errors) {
  Plot orbit{.title = "orbit, with a dot for each step",
             .x_label = "x",
             .curves = {{"planet", {}, true}, {"sun", {{0, 0}}, true}},
             .equal_axes = true};
  Plot lengths{
      .title = "lengths of steps", .x_label = "time", .curves = {{"", {}}}, .logarithmic = true};
  double before = 0;
  for (std::int64_t n = 0; n < flight.steps; ++n) {
    const double time = flight.path[0].at(n);
    const Tensor& motion = flight.path[2];
    orbit.curves[0].points.emplace_back(motion.at(4 * n), motion.at(4 * n + 1));
    if (time > before) lengths.curves[0].points.emplace_back(time, time - before);
    before = time;
  }
  return draw(std::vector<Panel>{orbit, lengths, errors});
}

bool run(const Arguments& arguments) {
  const int digits = arguments.quick ? 7 : 11;
  Plot errors{.title = "relative error of the gradient",
              .x_label = "requested correct digits",
              .curves = {{"through lengths", {}}, {"lengths held", {}}},
              .logarithmic = true};
  bool holds = true;
  Flight shown;
  for (int digit = 4; digit <= digits; ++digit) {
    for (const bool through : {true, false}) {
      const double tolerance = std::pow(10, -digit);
      Tape tape;
      const Flight flight = fly(tape, {tolerance, through});
      std::printf("%.0e, %-15s %3lld steps, dy/dv %.7f, dy/dr %.6f, relative error %.1e\n",
                  tolerance, through ? "through lengths" : "lengths held",
                  static_cast<long long>(flight.steps), flight.by_speed, flight.by_distance,
                  flight.error());
      errors.curves[through ? 0 : 1].points.emplace_back(digit, flight.error());
      holds = holds && flight.error() < 200 * tolerance;
      if (digit == 5) shown = flight;
    }
  }
  write_file(arguments.output + "/13_adaptive_ode.svg", picture_of(shown, errors));
  return all_hold({{holds, "derivatives are as accurate as the tolerance implies"}});
}

}  // namespace

int main(int argc, char** argv) { return program_main(argc, argv, run); }
