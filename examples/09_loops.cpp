// Loops of many steps, each recorded as one node of the tape. The first one diffuses heat on a ring
// and differentiates the result by the initial state and the conductivity, within 4 MiB. The second
// one ends when the ring has cooled down.
#include <palimpsest.h>

#include <cmath>
#include <iostream>

using namespace palimpsest;

namespace {

constexpr std::int64_t cells = 400;

Tensor hump() {
  Tensor u = Tensor::zeros({cells}, DType::f64);
  for (std::int64_t i = 0; i < cells; ++i) {
    const double x = 20.0 * static_cast<double>(i) / cells - 10.0;
    u.data<double>()[static_cast<std::size_t>(i)] = std::exp(-x * x);
  }
  return u;
}

Var heat_step(const Var& u, const Var& conductivity) {
  return u + conductivity * (roll(u, 1, 0) - 2.0 * u + roll(u, -1, 0));
}

}  // namespace

int main() {
  Tape tape;
  const Var start = tape.parameter(hump(), "start");
  const Var conductivity = tape.parameter(Tensor::scalar(0.2, DType::f64), "conductivity");

  const std::int64_t steps = 20'000;
  const Var end = scan(start, steps,
                       [&](const Var& u, const StepNumber&) { return heat_step(u, conductivity); });
  const Var energy = sum(end * end);
  const Gradients gradients = backward(energy, {.memory_budget = 4_MiB});
  std::cout << "energy after " << steps << " steps " << gradients.loss().item() << ", derivative "
            << gradients[conductivity].item() << '\n'
            << gradients.report();

  // Check against central differences in the conductivity.
  const double h = 1e-5;
  const auto energy_at = [&](double value) {
    const Var other = tape.constant(Tensor::scalar(value, DType::f64));
    const Var u =
        scan(start, steps, [&](const Var& x, const StepNumber&) { return heat_step(x, other); });
    return sum(u * u).item();
  };
  const double difference = (energy_at(0.2 + h) - energy_at(0.2 - h)) / (2 * h);
  std::cout << "by differences " << difference << '\n';

  const WhileResult cooling = while_loop(
      {&start, 1}, [](std::span<const Var> u, const StepNumber&) { return max(u[0]) > 0.2; },
      [&](std::span<const Var> u, std::span<const Var>, const StepNumber&) {
        return LoopStep{{heat_step(u[0], conductivity)}};
      });
  const Gradients cooled = backward(sum(cooling.state[0] * cooling.state[0]));
  std::cout << "cooled down in " << cooling.steps.item<std::int64_t>() << " steps, derivative "
            << cooled[conductivity].item() << '\n';
  const double found = gradients[conductivity].item();
  return std::abs(found - difference) < 1e-4 * std::abs(found) ? 0 : 1;
}
