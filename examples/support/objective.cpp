#include "examples/support/objective.h"

#include <Eigen/Core>
#include <cmath>
#include <span>

namespace examples {
namespace {

using Eigen::VectorXd;
using palimpsest::Tensor;

Eigen::Map<VectorXd> vector_of(const Tensor& tensor) {
  return {tensor.data<double>().data(), tensor.elements()};
}

}  // namespace

palimpsest::Objective objective_of(palimpsest::Runner& runner, const palimpsest::Var& parameter) {
  return [&runner, parameter](std::span<const Tensor> at) {
    runner.bind(parameter, at[0]);
    runner.run();
    const palimpsest::Gradients gradients = runner.gradients();
    return palimpsest::ValueAndGradients{gradients.loss().item(), {gradients[parameter]}};
  };
}

Claim check_gradient(const palimpsest::Objective& objective, const Tensor& at, double distance) {
  const VectorXd gradient = vector_of(objective({&at, 1}).gradients[0]);
  const double length = gradient.norm();
  const auto value_at = [&](double along) {
    const Tensor point = at.clone();
    vector_of(point) += along / length * gradient;
    return objective({&point, 1}).value;
  };
  const double difference = (value_at(distance) - value_at(-distance)) / (2 * distance);
  const double error = std::abs(difference / length - 1);
  return {error < 1e-4,
          format("the gradient matches central differences to a relative error of %.0e", error)};
}

}  // namespace examples
