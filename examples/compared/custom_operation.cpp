// Fits the orbit of a planet. Kepler's equation E − e·sin E = M is a custom operation: Newton's
// method solves it, and the implicit function theorem gives its derivative.
#include <palimpsest.h>

#include <algorithm>
#include <cstdio>

#include "examples/compared/support.h"

using namespace palimpsest;

void solve_kepler(const CustomCall& call) {
  const Tensor& M = call.inputs[0];
  const double e = call.inputs[1].item();
  Tensor E = M;
  for (int k = 0; k < 10; ++k) E = E - (E - e * sin(E) - M) / (1.0 - e * cos(E));
  std::ranges::copy(E.data<double>(), call.outputs[0].data<double>().begin());
}

void pull_back_kepler(const Pullback& p) {
  const Var slope = p.adjoint() / (1.0 - p.input(1) * cos(p.output()));
  p.set(0, slope);
  p.set(1, sum(slope * sin(p.output())));
}

const CustomOperation kepler({.name = "kepler", .forward = solve_kepler, .vjp = pull_back_kepler});

Var positions(const Var& orbit) {
  const auto [e, frequency, phase] = unstack<3>(orbit);
  const Var times = orbit.tape().constant(Tensor::arange(1000, DType::f64)) / 50;
  const Var E = kepler({frequency * times + phase, e});
  return stack({cos(E) - e, sqrt(1.0 - square(e)) * sin(E)}, 1);
}

int main() {
  Tape data;
  const Var truth = data.constant(Tensor::from({0.4, 1.0, 0.3}, {3}));
  const Var noise = 0.01 * data.constant(normals({1000, 2}, "noise"));
  const Tensor seen = (positions(truth) + noise).value();
  const Tensor orbit = Tensor::from({0.1, 1.05, 0.0}, {3});
  Runner runner(Program::gradients(
      [&](Tape& tape) { return mse(positions(tape.parameter(orbit)), tape.constant(seen)); }));
  const auto optimizer = adam({.learning_rate = 0.01});
  for (int step = 0; step < 200; ++step) {
    runner.run();
    const Gradients gradients = runner.gradients();
    optimizer->step(gradients);
    if (step % 20 == 0) std::printf("step %d loss %.12g\n", step, gradients.loss().item());
  }
  std::printf("found %.12g %.12g %.12g\n", orbit.at(0), orbit.at(1), orbit.at(2));
}
