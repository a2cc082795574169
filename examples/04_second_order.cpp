// Second derivatives: Newton's method on Rosenbrock's valley f(x) = Σ 100(xᵢ₊₁ − xᵢ²)² + (1 − xᵢ)²,
// and a Hessian-vector product that never forms the Hessian.
#include <palimpsest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

using namespace palimpsest;

namespace {

Var rosenbrock(const Var& x) {
  const std::int64_t last = x.shape()[0] - 1;
  const Var here = slice(x, 0, {.stop = last});
  const Var next = slice(x, 0, {.start = 1});
  return sum(100.0 * square(next - square(here)) + square(1.0 - here));
}

double largest(const Tensor& tensor) {
  double most = 0;
  for (const double element : tensor.data<double>()) most = std::max(most, std::abs(element));
  return most;
}

}  // namespace

int main() {
  Tensor point = Tensor::full({4}, -0.5, DType::f64);
  for (int step = 0; step < 100; ++step) {
    Tape tape;
    const Var x = tape.parameter(point);
    const Var f = rosenbrock(x);
    const Var slope = gradient(f, x);
    const double steepest = largest(slope.value());
    std::cout << "step " << step << ": f = " << f.item() << ", |f'| = " << steepest << '\n';
    if (steepest < 1e-9) break;
    const Var direction = solve(tape.constant(hessian(f, x)), slope);
    // Halve Newton's step until it goes downhill.
    for (int halvings = 0; halvings < 20; ++halvings) {
      const double length = std::ldexp(1.0, -halvings);
      const Tensor trial = (x - length * direction).value();
      Tape other;
      if (rosenbrock(other.constant(trial)).item() < f.item()) {
        point = trial.clone();
        break;
      }
    }
  }

  Tape tape;
  const Var x = tape.parameter(point);
  const Var v = tape.constant(Tensor::from({1.0, 2.0, 3.0, 4.0}, {4}));
  const Var product = hvp(rosenbrock(x), x, v);
  const Var by_matrix = matmul(tape.constant(hessian(rosenbrock(x), x)), v);
  std::cout << "minimum at " << point << "\nH·v " << product.value() << '\n';
  const bool agree = largest((product - by_matrix).value()) < 1e-9;
  return largest((x - 1.0).value()) < 1e-6 && agree ? 0 : 1;
}
