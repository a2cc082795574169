// Hamiltonian Monte Carlo draws from the posterior of a logistic regression.
#include <palimpsest.h>

#include <cstdio>

#include "examples/compared/support.h"

using namespace palimpsest;

constexpr double length = 0.1;
const Tensor x = normals({200, 8}, "x"), y = classes({200}, "y", 2).to(DType::f64);

Var potential(const Var& q) {
  const Var logits = matmul(q.tape().constant(x), q);
  return sum(softplus(logits) - q.tape().constant(y) * logits) + 0.5 * sum(square(q));
}

LoopStep transition(std::span<const Var> state, std::span<const Var> random, const StepNumber&) {
  Var q = state[0];
  Var p = random[0] - 0.5 * length * gradient(potential(q), q);
  for (int leap = 0; leap < 10; ++leap) {
    q = q + length * p;
    p = p - (leap < 9 ? length : 0.5 * length) * gradient(potential(q), q);
  }
  const Var before = potential(state[0]) + 0.5 * sum(square(random[0]));
  const Var after = potential(q) + 0.5 * sum(square(p));
  const Var accepted = log(0.5 + 0.5 * random[1]) < before - after;
  const Var next = where(accepted, q, state[0]);
  return {.state = {next}, .outputs = {next, cast(accepted, DType::f64)}};
}

int main() {
  Tensor state = Tensor::zeros({8}, DType::f64);
  Tape tape;
  for (int step = 1; step <= 10; ++step) {
    tape.clear();
    const Var momenta = tape.constant(normals({100, 8}, "p " + std::to_string(step)));
    const Var chances = tape.constant(numbers({100}, "u " + std::to_string(step), DType::f64));
    const auto [end, draws] = scan({tape.constant(state)}, 100, {momenta, chances}, transition);
    const Var results[] = {mean(draws[0]), mean(variance(draws[0], {0})), mean(draws[1]), end[0]};
    evaluate(results);
    state = end[0].value();
    std::printf("step %d mean %.12g variance %.12g accepted %.12g\n", step, results[0].item(),
                results[1].item(), results[2].item());
  }
}
