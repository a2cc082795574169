#include "autodiff/gradcheck.h"

#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::gradcheck_test {
namespace {

using Catch::Matchers::Contains;

// y = x² with a wrong derivative of order `wrong`, which gradcheck must find.
template <int wrong>
Var crooked_square(const Var& x) {
  static const Operation operation{
      .name = "crooked_square",
      .formula = "y = x²",
      .summary = "a wrong derivative",
      .compute =
          [](const KernelCall& call) {
            for (std::int64_t i = 0; i < call.input().elements(); ++i) {
              const double value = call.input().as<double>()[i];
              call.output().as<double>()[i] = value * value;
            }
          },
      .vjp =
          [](const Pullback& p) {
            const Var x = p.input();
            if (wrong == 0) p.set(0, 2.0 * x * p.adjoint());
            if (wrong == 1) p.set(0, 2.001 * x * p.adjoint());
            if (wrong == 2) p.set(0, (stop_gradient(x) + x) * p.adjoint());
          },
  };
  const ValueType type = x.type();
  return x.tape().record(operation, {&x, 1}, {&type, 1}, {}, Where::current());
}

TEST_CASE("wrong derivatives are found at their order") {
  const Tensor x = Tensor::normal({4}, 1, 0, 1, DType::f64);
  const Differentiable right = [](auto xs) { return crooked_square<0>(xs[0]); };
  const Differentiable first = [](auto xs) { return crooked_square<1>(xs[0]); };
  const Differentiable second = [](auto xs) { return crooked_square<2>(xs[0]); };
  const auto check = [&](const Differentiable& f, int order) {
    return gradcheck(f, {&x, 1}, {.order = order});
  };
  CHECK(check(right, 3).passed);
  CHECK(check(right, 2).worst < 1e-7);
  CHECK(!check(first, 1).passed);
  CHECK_THAT(check(first, 1).message, Contains("order 1, input 0, direction"));
  CHECK(check(second, 1).passed);
  CHECK(!check(second, 2).passed);
  CHECK_THAT(check(second, 2).message, Contains("order 2, input 0, direction"));
}

TEST_CASE("each input is checked and named, integers are held") {
  const Tensor inputs[] = {Tensor::arange(3), Tensor::from({1.0, 2.0, 3.0}, {3}),
                           Tensor::from({0.5, -0.5, 0.25}, {3})};
  const Differentiable f = [](auto xs) {
    return xs[1] * cast(xs[0], DType::f64) + crooked_square<1>(xs[2]);
  };
  const auto result = gradcheck(f, inputs);
  CHECK(!result.passed);
  CHECK_THAT(result.message, Contains("input 2"));
}

TEST_CASE("any output shape will do, an empty one too") {
  const Shape shape = GENERATE(Shape{}, Shape{3}, Shape{2, 1, 3}, Shape{0, 3});
  const Tensor x = Tensor::normal(shape, 1, 0, 1, DType::f64);
  CHECK(gradcheck([](auto xs) { return tanh(xs[0]); }, {&x, 1}).passed);
  CHECK(gradcheck([](auto xs) { return sum(xs[0] * xs[0]); }, {&x, 1}).passed);
}

TEST_CASE("what is not a number does not pass") {
  const Tensor x = Tensor::from({-1.0, 2.0}, {2});
  const auto result = gradcheck([](auto xs) { return sqrt(xs[0]); }, {&x, 1});
  CHECK(!result.passed);
  CHECK(std::isnan(result.worst));
}

TEST_CASE("gradcheck takes f64 and sensible options") {
  const Tensor narrow = Tensor::vector({1});
  const Tensor x = Tensor::from({1.0}, {1});
  const Differentiable f = [](auto xs) { return exp(xs[0]); };
  CHECK_THROWS_WITH(gradcheck(f, {&narrow, 1}), Contains("[gradcheck]") && Contains("f32 (1)") &&
                                                    Contains("convert it with to()"));
  CHECK_THROWS_WITH(gradcheck([](auto xs) { return cast(xs[0], DType::f32); }, {&x, 1}),
                    Contains("returns f32 (1)") && Contains("gradcheck_test.cpp:"));
  CHECK_THROWS_WITH(gradcheck(f, {&x, 1}, {.order = 0}), Contains("order is 0"));
}

}  // namespace
}  // namespace palimpsest::gradcheck_test
