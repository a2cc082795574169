// Finds the force that carries a fluid from rest to a given velocity. The velocity u obeys Burgers'
// equation u_t + u·u_x = ν·u_xx + force, and L-BFGS changes the force at all times and places.
#include <palimpsest.h>
#include <palimpsest/strategy/training/training.h>

#include <cstdio>
#include <numbers>

using namespace palimpsest;

int main() {
  constexpr std::int64_t steps = 400, cells = 100;
  constexpr double interval = 0.0025, width = 0.01, viscosity = 0.01;
  const auto step = [](std::span<const Var> state, std::span<const Var> force, auto&) {
    const Var &u = state[0], left = roll(u, 1, 0), right = roll(u, -1, 0);
    const Var advection = u * (right - left) / (2 * width);
    const Var diffusion = viscosity * (right - 2.0 * u + left) / (width * width);
    return LoopStep{{u + interval * (diffusion - advection + force[0])}};
  };
  Runner runner(Program::gradients(
      [&](Tape& tape) {
        const Var force = tape.parameter(Tensor::zeros({steps, cells}, DType::f64), "force");
        const Var rest = full(tape, {cells}, 0, DType::f64);
        const Var end = scan({rest}, steps, {force}, step).state[0];
        const Var places = tape.constant(Tensor::arange(cells, DType::f64)) * width;
        const Var target = sin(2 * std::numbers::pi * places);
        return 0.5 * width * sum(square(end - target)) +
               0.05 * width * interval * sum(square(force));
      },
      {.memory_budget = 1_MiB}));
  const LbfgsResult found = minimize_lbfgs(
      [&] {
        runner.run();
        return runner.gradients();
      },
      {.iterations = 200, .gradient_tolerance = 1e-12, .watch = [](const LbfgsIteration& now) {
         std::printf("iteration %d %.12g\n", now.iteration, now.value);
       }});
  std::printf("objective %.12g\n", found.value);
}
