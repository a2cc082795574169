// Defines a custom operation with its derivative and uses it under a memory budget. The operation
// is the softplus of a signed distance with a sharpness: y = log(1 + exp(s·x))/s. Its derivative is
// σ(s·x).
#include <palimpsest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

using namespace palimpsest;

namespace {

CustomOperation smooth_ramp(double sharpness) {
  return CustomOperation({
      .name = "smooth_ramp",
      .forward =
          [sharpness](const CustomCall& call) {
            const auto x = call.inputs[0].data<double>();
            const auto y = call.outputs[0].data<double>();
            for (std::size_t i = 0; i < x.size(); ++i) {
              const double scaled = sharpness * x[i];
              // The exp of a large positive number would overflow.
              y[i] = (std::max(scaled, 0.0) + std::log1p(std::exp(-std::abs(scaled)))) / sharpness;
            }
          },
      // Uses recorded operations, so that the derivative can be differentiated again.
      .vjp =
          [sharpness](const Pullback& p) {
            p.set(0, p.adjoint() / (1.0 + exp(p.input() * -sharpness)));
          },
  });
}

}  // namespace

int main() {
  const CustomOperation ramp = smooth_ramp(4.0);
  const Tensor inputs[] = {Tensor::normal({64}, /*seed=*/3, 0, 1, DType::f64)};
  const GradcheckResult check = gradcheck([&](auto xs) { return ramp({xs[0]}); }, inputs);
  std::cout << "derivatives of order 1 and 2 " << (check ? "agree" : "differ: " + check.message)
            << " with central differences\n";

  Tape tape;
  const Var x = tape.parameter(Tensor::normal({1000, 50}, /*seed=*/4, 0, 1, DType::f64), "x");
  Var y = x;
  for (int i = 0; i < 20; ++i) y = ramp({y - 0.1});
  const Var loss = sum(y);
  const Tensor everything_kept = backward(loss)[x];
  const Gradients inside = backward(loss, {.memory_budget = 3_MiB});
  std::cout << inside.report().summary() << '\n';
  const bool same = same_bits(everything_kept, inside[x]);
  std::cout << "the same bits as without a budget: " << std::boolalpha << same << '\n';
  return check && same ? 0 : 1;
}
