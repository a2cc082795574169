// A custom operation with derivatives of every order: the solution E of Kepler's equation
// E - e·sin(E) = M.
#include <palimpsest.h>

#include <cmath>
#include <cstdio>
#include <iostream>

using namespace palimpsest;

namespace {

void solve_kepler(const CustomCall& call) {
  const auto M = call.inputs[0].data<double>(), E = call.outputs[0].data<double>();
  const double e = call.inputs[1].item();
  for (std::size_t i = 0; i < M.size(); ++i) {
    E[i] = M[i];
    for (int k = 0; k < 10; ++k) {  // Newton's method
      E[i] -= (E[i] - e * std::sin(E[i]) - M[i]) / (1 - e * std::cos(E[i]));
    }
  }
}

// The implicit function theorem: dE/dM = 1/(1 - e·cos E) and dE/de = sin E/(1 - e·cos E).
void pull_back_kepler(const Pullback& p) {
  const Var e = p.input(1), E = p.output();
  const Var slope = p.adjoint() / (1.0 - e * cos(E));
  if (p.wants(0)) p.set(0, slope);
  if (p.wants(1)) p.set(1, sum(slope * sin(E)));
}

std::vector<ValueType> types_of_kepler(std::span<const ValueType> inputs) {
  if (inputs[0].dtype != DType::f64 || inputs[1].shape.elements() != 1) {
    throw ArgumentError("give M in f64, and e as one number");
  }
  return {inputs[0]};
}

const CustomOperation kepler(
    {.name = "kepler", .types = types_of_kepler, .forward = solve_kepler, .vjp = pull_back_kepler});

}  // namespace

int main() {
  // Compare orders 1 and 2 with central differences, in random directions.
  const Tensor M = Tensor::uniform({8}, /*seed=*/1, 0, 6, DType::f64);
  const Tensor e = Tensor::scalar(0.4, DType::f64);
  const Tensor inputs[] = {M, e};
  const GradcheckResult check =
      gradcheck([](std::span<const Var> x) { return kepler({x[0], x[1]}); }, inputs, {.order = 2});
  std::printf("orders 1 and 2: %s\n", check ? "correct" : check.message.c_str());

  // First and second derivative of one distance with respect to the eccentricity.
  Tape tape;
  const Var eccentricity = tape.parameter(e, "eccentricity");
  const Var anomaly = kepler({tape.constant(Tensor::full({1}, 1.0, DType::f64)), eccentricity});
  const Var distance = sum(1.0 - eccentricity * cos(anomaly));
  const Var first = gradient(distance, eccentricity);
  const Var second = gradient(first, eccentricity);
  std::printf("distance %.6f, derivatives %.6f and %.6f\n", distance.item(), first.item(),
              second.item());

  // Wrong inputs are refused when the operation is recorded.
  try {
    kepler({tape.constant(Tensor::ones({3})), eccentricity});
  } catch (const ArgumentError& error) {
    std::cout << error.what() << '\n';
  }
  return check ? 0 : 1;
}
