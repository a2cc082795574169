// The Levenberg-Marquardt method fits two damped oscillations to noisy readings.
#include <palimpsest.h>

#include <algorithm>
#include <cstdio>

#include "examples/compared/support.h"

using namespace palimpsest;

Var signal(const Var& p, const Tensor& times) {
  const Tensor t = unsqueeze(times, 1);
  const auto [amplitude, decay, frequency, phase] = unstack<4>(p);
  return sum(amplitude * exp(-decay * t) * cos(frequency * t + phase), {1});
}

int main() {
  const Tensor truth = Tensor::from({1.0, 0.7, 0.3, 0.1, 3.0, 7.0, 0.5, -0.4}, {4, 2});
  const Tensor times = Tensor::arange(400, DType::f64) / 40, noise = normals({400}, "noise");
  Tape tape;
  const Tensor readings = signal(tape.constant(truth), times).value() + 0.01 * noise;
  Tensor found = Tensor::from({0.8, 0.8, 0.2, 0.2, 3.2, 6.8, 0.0, 0.0}, {4, 2});
  double damping = 1e-3;
  for (int step = 1; step <= 20; ++step) {
    tape.clear();
    const Var p = tape.parameter(found);
    const Var residuals = signal(p, times) - readings;
    const Var J = tape.constant(jacobian(residuals, p).reshape({400, 8}));
    const Var squares = matmul(J, J, {.transpose_a = true});
    const Var change =
        solve(squares + damping * triu(tril(squares)), matmul(J, residuals, {.transpose_a = true}));
    const Var trial = p - reshape(change, {4, 2});
    const double before = sum(square(residuals)).item();
    const double after = sum(square(signal(trial, times) - readings)).item();
    if (after < before) found = trial.value();
    damping *= after < before ? 0.3 : 3;
    std::printf("step %d cost %.12g\n", step, std::min(before, after));
  }
  for (const double element : found.data<double>()) std::printf("found %.12g\n", element);
}
