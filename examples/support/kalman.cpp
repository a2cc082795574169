#include "examples/support/kalman.h"

#include <cmath>
#include <numbers>

using namespace palimpsest;

namespace examples {
namespace {

Tensor matrix(std::vector<double> elements, const Shape& shape) {
  return Tensor::from<double>(elements, shape);
}

}  // namespace

Tensor Kalman::simulated(std::uint64_t seed) const {
  Tensor positions = Tensor::normal({steps, 2}, seed, 0, 0.4, DType::f64);
  const std::span<double> numbers = positions.data<double>();
  for (std::size_t step = 0; step < static_cast<std::size_t>(steps); ++step) {
    const double time = interval * static_cast<double>(step);
    numbers[2 * step] += 3 * time;
    numbers[2 * step + 1] += 10 * std::sin(0.3 * time);
  }
  return positions;
}

Var Kalman::record(Tape& tape) {
  const double t = interval;
  noises = tape.parameter(first_noises(), "noises");
  measurements = tape.constant(simulated(1), "measurements");
  const auto constant = [&](std::vector<double> elements, const Shape& shape) {
    return tape.constant(matrix(std::move(elements), shape));
  };
  const Var motion = constant({1, 0, t, 0, 0, 1, 0, t, 0, 0, 1, 0, 0, 0, 0, 1}, {4, 4});
  const Var observed = constant({1, 0, 0, 0, 0, 1, 0, 0}, {2, 4});
  const Var identity = constant({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, {4, 4});
  const double position = t * t * t * t / 4;
  const double mixed = t * t * t / 2;
  // A random acceleration during each interval.
  const Var pushed = constant(
      {position, 0, mixed, 0, 0, position, 0, mixed, mixed, 0, t * t, 0, 0, mixed, 0, t * t},
      {4, 4});
  const Var variances = exp(2.0 * noises);
  const Var process = pushed * variances[0];
  const Var error = constant({1, 0, 0, 1}, {2, 2}) * variances[1];

  Var state = constant({0, 0, 3, 3}, {4, 1});
  Var covariance = identity * 4.0;
  Var loss =
      full(tape, {}, static_cast<double>(steps) * std::log(2 * std::numbers::pi), DType::f64);
  for (std::int64_t step = 0; step < steps; ++step) {
    state = matmul(motion, state);
    covariance = matmul(matmul(motion, covariance), motion, {.transpose_b = true}) + process;
    const Var seen = matmul(observed, covariance);
    const Var factor = cholesky(matmul(seen, observed, {.transpose_b = true}) + error);
    const Var surprise = reshape(measurements[step], {2, 1}) - matmul(observed, state);
    const Var whitened = triangular_solve(factor, surprise);
    const Var gain = triangular_solve(factor, seen);  // L⁻¹·H·P
    state = state + matmul(gain, whitened, {.transpose_a = true});
    covariance = covariance - matmul(gain, gain, {.transpose_a = true});
    loss = loss + 0.5 * sum(square(whitened)) + sum(log(diagonal(factor)));
  }
  return loss;
}

Program Kalman::program() {
  return Program::gradients([this](Tape& tape) { return record(tape); }, {.threads = 1});
}

ExportedC Kalman::exported(const Program& program, Bytes budget) const {
  return export_c(
      program,
      {.memory_budget = budget, .name = "kalman", .arguments = {{"measurements", measurements}}});
}

Tensor first_noises() { return Tensor::from<double>({0, 0}, {2}); }

}  // namespace examples
