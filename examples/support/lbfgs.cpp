#include "examples/support/lbfgs.h"

#include <Eigen/Core>
#include <cmath>
#include <deque>

namespace examples {
namespace {

using Eigen::VectorXd;
using palimpsest::Tensor;

Eigen::Map<VectorXd> vector_of(const Tensor& tensor) {
  return {tensor.data<double>().data(), tensor.elements()};
}

/// A step and the change of the gradient along it.
struct Pair {
  VectorXd step;
  VectorXd change;
};

/// −H·gradient, where H is the inverse Hessian that the pairs build from a multiple of the
/// identity.
VectorXd direction(const VectorXd& gradient, const std::deque<Pair>& pairs) {
  VectorXd q = -gradient;
  std::vector<double> along(pairs.size());
  for (std::size_t i = pairs.size(); i-- > 0;) {
    along[i] = pairs[i].step.dot(q) / pairs[i].step.dot(pairs[i].change);
    q -= along[i] * pairs[i].change;
  }
  const Pair& last = pairs.back();
  q *= last.step.dot(last.change) / last.change.squaredNorm();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double back = pairs[i].change.dot(q) / pairs[i].step.dot(pairs[i].change);
    q += (along[i] - back) * pairs[i].step;
  }
  return q;
}

}  // namespace

Objective objective_of(palimpsest::Runner& runner, const palimpsest::Var& parameter) {
  return [&runner, parameter](const Tensor& x) {
    runner.bind(parameter, x);
    runner.run();
    const palimpsest::Gradients gradients = runner.gradients();
    // Copy, so that the next run can reuse the memory of this one.
    return ValueAndGradient{gradients.loss().item(), gradients[parameter].clone()};
  };
}

Tensor minimize_lbfgs(const Objective& objective, const Tensor& start, const LbfgsOptions& options,
                      const std::function<void(int, const Tensor&, double)>& watch) {
  Tensor at = start.clone();
  ValueAndGradient here = objective(at);
  if (watch) watch(0, at, here.value);
  std::deque<Pair> pairs;
  for (int iteration = 1; iteration <= options.iterations; ++iteration) {
    const VectorXd gradient = vector_of(here.gradient);
    if (gradient.norm() == 0) break;
    VectorXd step = pairs.empty() ? VectorXd(-options.first_step / gradient.norm() * gradient)
                                  : direction(gradient, pairs);
    const double slope = gradient.dot(step);

    Tensor next = at.clone();
    ValueAndGradient there;
    int halvings = 0;
    for (; halvings < 20; ++halvings, step /= 2) {
      vector_of(next) = vector_of(at) + step;
      there = objective(next);
      // False for NaN, which therefore does not count as descent.
      if (there.value <= here.value + 1e-4 * std::ldexp(slope, -halvings)) break;
    }
    if (halvings == 20) break;

    Pair pair{step, vector_of(there.gradient) - gradient};
    // A pair whose slope does not rise along the step would make H indefinite.
    if (pair.step.dot(pair.change) > 0) {
      pairs.push_back(std::move(pair));
      if (pairs.size() > static_cast<std::size_t>(options.memory)) pairs.pop_front();
    }
    at = next;
    here = there;
    if (watch) watch(iteration, at, here.value);
  }
  return at;
}

Claim check_gradient(const Objective& objective, const Tensor& at, double distance) {
  const VectorXd gradient = vector_of(objective(at).gradient);
  const double length = gradient.norm();
  const auto value_at = [&](double along) {
    const Tensor point = at.clone();
    vector_of(point) += along / length * gradient;
    return objective(point).value;
  };
  const double difference = (value_at(distance) - value_at(-distance)) / (2 * distance);
  const double error = std::abs(difference / length - 1);
  return {error < 1e-4,
          format("the gradient matches central differences to a relative error of %.0e", error)};
}

}  // namespace examples
