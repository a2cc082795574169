// Problems of GradBench in two forms. Its least squares with a polynomial basis is left out,
// because the fastest form of the basis multiplies in another order.
#include "benchmarks/native/evals.h"

#include <array>
#include <cstdint>

namespace palimpsest::benchmarks {
namespace {

Tensor numbers(const Shape& shape, std::uint64_t seed) {
  return Tensor::normal(shape, seed, 0, 1, DType::f64);
}

/// A mixture of 5 Gaussians at 1,000 points of a plane.
namespace mixture {

constexpr std::int64_t points = 1'000, parts = 5, axes = 2;

Var loss_of(const Var& log_densities, const Var& weight, int part_axis) {
  const double count = points;
  return sum(logsumexp(log_densities, {part_axis})) - count * logsumexp(weight);
}

Var natural(Tape& tape) {
  const Var x = tape.constant(numbers({points, axes}, 1));
  const Var weight = tape.parameter(numbers({parts}, 2));
  const Var center = tape.parameter(numbers({parts, axes}, 3));
  const Var scale = tape.parameter(numbers({parts, axes}, 4));
  const Var z = (unsqueeze(x, 1) - center) * exp(scale);
  return loss_of(weight + sum(scale, {1}) - 0.5 * sum(z * z, {2}), weight, 1);
}

/// The points are the last axis.
Var best(Tape& tape) {
  const Var x = tape.constant(transpose(numbers({points, axes}, 1)));
  const Var weight = tape.parameter(numbers({parts}, 2));
  const Var center = tape.parameter(transpose(numbers({parts, axes}, 3)));
  const Var scale = tape.parameter(transpose(numbers({parts, axes}, 4)));
  const Var z = (unsqueeze(x, 1) - unsqueeze(center, 2)) * unsqueeze(exp(scale), 2);
  const Var log_weight = unsqueeze(weight + sum(scale, {0}), 1);
  return loss_of(log_weight - 0.5 * sum(z * z, {0}), weight, 0);
}

}  // namespace mixture

/// The second derivative of k-means, 100 clusters of 1,000 points of 16 numbers, in one direction.
namespace k_means {

constexpr std::int64_t points = 1'000, clusters = 100, axes = 16;

Var in_direction(const Var& loss, const Var& center, const Tensor& direction) {
  return sum(gradient(loss, center) * direction);
}

Var natural(Tape& tape) {
  const Var x = tape.constant(numbers({points, axes}, 1));
  const Var center = tape.parameter(numbers({clusters, axes}, 2));
  const Var apart = unsqueeze(x, 1) - center;
  const Var loss = sum(min(sum(apart * apart, {2}), {1}));
  return in_direction(loss, center, numbers({clusters, axes}, 3));
}

/// The points are the last axis.
Var best(Tape& tape) {
  const Var x = tape.constant(transpose(numbers({points, axes}, 1)));
  const Var center = tape.parameter(transpose(numbers({clusters, axes}, 2)));
  const Var apart = unsqueeze(x, 1) - unsqueeze(center, 2);
  const Var loss = sum(min(sum(apart * apart, {0}), {0}));
  return in_direction(loss, center, transpose(numbers({clusters, axes}, 3)));
}

}  // namespace k_means

/// The logarithm of a sum of 1.28 million exponentials.
namespace log_sum_exp {

constexpr std::int64_t count = 1'280'000;

Var natural(Tape& tape) {
  const Var x = tape.parameter(numbers({count}, 1));
  const Var most = max(x);
  return log(sum(exp(x - most))) + most;
}

Var best(Tape& tape) { return logsumexp(tape.parameter(numbers({count}, 1))); }

}  // namespace log_sum_exp

/// An equation of 1,000 numbers in 10 steps by the classical Runge-Kutta method.
namespace equation {

constexpr std::int64_t count = 1'000, steps = 10;

Var slope(const Var& rates, const Var& y) {
  const Var before = concat(
      {y.tape().constant(Tensor::ones({1}, DType::f64)), slice(y, 0, {.stop = count - 1})}, 0);
  return rates * before;
}

Var step(const Var& rates, const Var& y) {
  constexpr double h = 1.0 / steps;
  const Var k1 = slope(rates, y);
  const Var k2 = slope(rates, y + h / 2 * k1);
  const Var k3 = slope(rates, y + h / 2 * k2);
  const Var k4 = slope(rates, y + h * k3);
  return y + h / 6 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
}

Var natural(Tape& tape) {
  const Var rates = tape.parameter(numbers({count}, 1));
  const Var start = tape.constant(Tensor::zeros({count}, DType::f64));
  const Var end =
      scan(start, steps, [&](const Var& y, const StepNumber&) { return step(rates, y); });
  return sum(end * end);
}

/// Recorded step by step.
Var best(Tape& tape) {
  const Var rates = tape.parameter(numbers({count}, 1));
  Var y = tape.constant(Tensor::zeros({count}, DType::f64));
  for (std::int64_t n = 0; n < steps; ++n) y = step(rates, y);
  return sum(y * y);
}

}  // namespace equation

constexpr std::array<Eval, 4> all{{
    {"eval_mixture", "a mixture of 5 Gaussians at 1,000 points of a plane", mixture::natural,
     mixture::best},
    {"eval_k_means", "k-means of 1,000 points in 100 clusters, second derivative in one direction",
     k_means::natural, k_means::best},
    {"eval_log_sum_exp", "the logarithm of the sum of 1.28 million exponentials",
     log_sum_exp::natural, log_sum_exp::best},
    {"eval_equation", "10 Runge-Kutta steps of an equation of 1,000 numbers", equation::natural,
     equation::best},
}};

}  // namespace

std::span<const Eval> evals() { return all; }

}  // namespace palimpsest::benchmarks
