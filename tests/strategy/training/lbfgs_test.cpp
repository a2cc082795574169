#include "strategy/training/lbfgs.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <cmath>
#include <limits>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::lbfgs_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;

/// Σ 100·(xᵢ₊₁ − xᵢ²)² + (1 − xᵢ)².
ValueAndGradients rosenbrock(std::span<const Tensor> at) {
  const auto x = at[0].data<double>();
  ValueAndGradients found{0, {Tensor::zeros(at[0].shape(), DType::f64)}};
  const auto g = found.gradients[0].data<double>();
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double a = x[i + 1] - x[i] * x[i];
    const double b = 1 - x[i];
    found.value += 100 * a * a + b * b;
    g[i] -= 400 * a * x[i] + 2 * b;
    g[i + 1] += 200 * a;
  }
  return found;
}

/// ½·Σ cᵢ·(xᵢ − i)² with cᵢ from 1 to 1,000.
ValueAndGradients quadratic(std::span<const Tensor> at) {
  const auto x = at[0].data<double>();
  ValueAndGradients found{0, {Tensor::zeros(at[0].shape(), DType::f64)}};
  const auto g = found.gradients[0].data<double>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto n = static_cast<double>(x.size() - 1);
    const double c = std::pow(1000, static_cast<double>(i) / n);
    const double d = x[i] - static_cast<double>(i);
    found.value += 0.5 * c * d * d;
    g[i] = c * d;
  }
  return found;
}

double product(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

/// Minimises from `start`, and checks the strong Wolfe conditions of every step.
LbfgsResult minimize_checked(const Objective& function, const Tensor& start, LbfgsOptions options) {
  Tensor before;
  ValueAndGradients found_before;
  int steps = 0;
  options.watch = [&](const LbfgsIteration& now) {
    const ValueAndGradients found = function({&start, 1});
    CHECK(found.value == now.value);
    CHECK_THAT(now.gradient_norm,
               Catch::Matchers::WithinRel(
                   std::sqrt(product(found.gradients[0], found.gradients[0])), 1e-12));
    CHECK(now.iteration == steps++);
    if (now.iteration > 0) {
      const Tensor step = start.clone();
      for (std::int64_t i = 0; i < step.elements(); ++i) {
        step.data<double>()[static_cast<std::size_t>(i)] -= before.at(i);
      }
      const double slope = product(found_before.gradients[0], step);
      CHECK(slope < 0);
      // The point is rounded, so the conditions hold up to rounding errors.
      const double room = 1e-10 * std::abs(found_before.value);
      CHECK(found.value <= found_before.value + options.decrease * slope + room);
      CHECK(std::abs(product(found.gradients[0], step)) <=
            options.curvature * -slope * (1 + 1e-6) + room);
    }
    before = start.clone();
    found_before = found;
  };
  const LbfgsResult result = minimize_lbfgs({start}, function, options);
  CHECK(result.iterations == steps - 1);
  CHECK(result.value == function({&start, 1}).value);
  return result;
}

TEST_CASE("L-BFGS finds the minimum of Rosenbrock's function") {
  const Tensor x = Tensor::from({-1.2, 1.0}, {2});
  const LbfgsResult result = minimize_checked(rosenbrock, x, {});
  CHECK(result.stop == LbfgsStop::gradient);
  CHECK(result.gradient_norm <= 1e-8);
  CHECK(result.iterations < 50);
  CHECK(result.evaluations < 70);
  CHECK_THAT(x.at(0), WithinAbs(1, 1e-8));
  CHECK_THAT(x.at(1), WithinAbs(1, 1e-8));

  const Tensor far = Tensor::zeros({40}, DType::f64);
  CHECK(minimize_checked(rosenbrock, far, {.iterations = 500}).stop == LbfgsStop::gradient);
  CHECK_THAT(far.at(39), WithinAbs(1, 1e-7));
}

TEST_CASE("L-BFGS finds the minimum of a quadratic with any memory and curvature") {
  for (const int memory : {1, 3, 10}) {
    for (const double curvature : {0.1, 0.9}) {
      const Tensor x = Tensor::zeros({30}, DType::f64);
      const LbfgsResult result = minimize_checked(
          quadratic, x, {.memory = memory, .iterations = 1000, .curvature = curvature});
      CAPTURE(memory, curvature, result.iterations, to_string(result.stop));
      CHECK(result.stop == LbfgsStop::gradient);
      for (std::int64_t i = 0; i < 30; ++i) {
        CHECK_THAT(x.at(i), WithinAbs(static_cast<double>(i), 1e-7));
      }
    }
  }
}

TEST_CASE("L-BFGS says why it stopped") {
  const auto stop = [](const Objective& function, const LbfgsOptions& options) {
    return minimize_lbfgs({Tensor::from({-1.2, 1.0}, {2})}, function, options).stop;
  };
  CHECK(stop(rosenbrock, {.iterations = 3}) == LbfgsStop::iterations);
  CHECK(stop(rosenbrock, {.evaluations = 5}) == LbfgsStop::evaluations);
  CHECK(stop(rosenbrock, {.decrease_tolerance = 0.5}) == LbfgsStop::decrease);
  CHECK(stop(rosenbrock, {.gradient_tolerance = 1e9}) == LbfgsStop::gradient);
  // The gradient points uphill.
  const auto wrong = [](std::span<const Tensor> at) {
    ValueAndGradients found = quadratic(at);
    for (double& g : found.gradients[0].data<double>()) g = -g;
    return found;
  };
  CHECK(stop(wrong, {}) == LbfgsStop::line_search);
  CHECK(to_string(LbfgsStop::line_search) == "the line search found no better point");
}

TEST_CASE("a failed line search leaves the start as it was") {
  const Tensor x = Tensor::from({-1.2, 1.0}, {2});
  const Tensor start = x.clone();
  const auto wrong = [&](std::span<const Tensor> at) {
    ValueAndGradients found = rosenbrock(at);
    if (!same_bits(at[0], start)) found.value += 1e9;
    return found;
  };
  CHECK(minimize_lbfgs({x}, wrong).stop == LbfgsStop::line_search);
  CHECK(same_bits(x, start));
}

TEST_CASE("steps to where the function is not finite are shortened") {
  // x − log x, with its minimum at 1; the first steps are too long.
  const auto function = [](std::span<const Tensor> at) {
    const double x = at[0].item();
    return ValueAndGradients{x - std::log(x), {Tensor::scalar(1 - 1 / x, DType::f64)}};
  };
  const Tensor x = Tensor::scalar(8, DType::f64);
  CHECK(minimize_lbfgs({x}, function, {.first_step = 1e3}).stop == LbfgsStop::gradient);
  CHECK_THAT(x.item(), WithinAbs(1, 1e-8));
  CHECK_THROWS_WITH(minimize_lbfgs({Tensor::scalar(-1, DType::f64)}, function),
                    Contains("start from another point"));
}

TEST_CASE("L-BFGS minimises what a tape records, over tensors of several dtypes") {
  const Tensor a = Tensor::zeros({3}, DType::f64);
  const Tensor b = Tensor::ones({2, 2});
  Tape tape;
  int calls = 0;
  const LbfgsResult result = minimize_lbfgs(
      [&] {
        ++calls;
        tape.clear();
        const Var p = tape.parameter(a);
        const Var q = tape.parameter(b);
        return backward(sum(square(p - 3.0)) + cast(sum(square(q + 2.0)), DType::f64));
      },
      {.gradient_tolerance = 1e-5});
  CHECK(result.stop == LbfgsStop::gradient);
  CHECK(result.evaluations == calls);
  CHECK_THAT(a.at(2), WithinAbs(3, 1e-5));
  CHECK_THAT(b.at(3), WithinAbs(-2, 1e-5));
}

TEST_CASE("L-BFGS minimises a planned program") {
  const Tensor x = Tensor::from({-1.2, 1.0}, {2});
  Runner runner(Program::gradients([&](Tape& tape) {
    const Var p = tape.parameter(x, "x");
    const Var a = select(p, 0, 0);
    const Var b = select(p, 0, 1);
    return 100.0 * square(b - a * a) + square(1.0 - a);
  }));
  const auto gradients = [&] {
    runner.run();
    return runner.gradients();
  };
  CHECK(minimize_lbfgs(gradients).stop == LbfgsStop::gradient);
  CHECK_THAT(x.at(1), WithinAbs(1, 1e-7));
}

TEST_CASE("L-BFGS has the same bits at any number of threads") {
  const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, 4);
  const auto minimum = [](int threads) {
    const Tensor x = Tensor::uniform({100'000}, 1, -1, 1, DType::f64);
    tbb::task_arena(threads).execute([&] { minimize_lbfgs({x}, quadratic, {.iterations = 5}); });
    return x;
  };
  CHECK(same_bits(minimum(1), minimum(4)));
}

TEST_CASE("wrong arguments of L-BFGS are errors") {
  const Tensor x = Tensor::zeros({2}, DType::f64);
  CHECK_THROWS_WITH(minimize_lbfgs({x}, rosenbrock, {.memory = 0}), Contains("memory is 0"));
  CHECK_THROWS_WITH(minimize_lbfgs({x}, rosenbrock, {.curvature = 1}), Contains("curvature is 1"));
  CHECK_THROWS_WITH(minimize_lbfgs({x}, rosenbrock, {.decrease = 0.95}), Contains("below curv"));
  CHECK_THROWS_WITH(minimize_lbfgs({x, x}, rosenbrock), Contains("tensor 1 occurs twice"));
  CHECK_THROWS_AS(minimize_lbfgs({Tensor::arange(2)}, rosenbrock), DTypeError);
  CHECK_THROWS_WITH(minimize_lbfgs({x, Tensor::zeros({2})}, rosenbrock),
                    Contains("1 gradients for 2 tensors"));
  const auto narrow = [](std::span<const Tensor>) {
    return ValueAndGradients{0, {Tensor::zeros({3}, DType::f64)}};
  };
  CHECK_THROWS_WITH(minimize_lbfgs({x}, narrow), Contains("gradient 0 is f64 (3)"));
  Tape tape;
  const auto other_each_time = [&] {
    tape.clear();
    return backward(sum(square(tape.parameter(Tensor::ones({2}, DType::f64)))));
  };
  CHECK_THROWS_WITH(minimize_lbfgs(other_each_time), Contains("other tensors than at the start"));
}

}  // namespace
}  // namespace palimpsest::lbfgs_test
