// Functions that f32 kernels compute from tables.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::activations_test {
namespace {

using Function = Var (*)(const Var&);

bool are_same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

TEST_CASE("derivatives of f32 activations agree with those of f64", "[elementwise]") {
  struct Row {
    const char* name;
    Function f;
  };
  const Row row = GENERATE(values<Row>({
      {"tanh", [](const Var& v) { return tanh(v); }},
      {"sigmoid", [](const Var& v) { return sigmoid(v); }},
      {"softplus", [](const Var& v) { return softplus(v); }},
      {"elu'", [](const Var& v) { return gradient(sum(elu(v, 0.75)), v); }},
      {"gelu'", [](const Var& v) { return gradient(sum(gelu(v)), v); }},
      {"gelu_tanh'", [](const Var& v) { return gradient(sum(gelu_tanh(v)), v); }},
      {"silu'", [](const Var& v) { return gradient(sum(silu(v)), v); }},
      {"mish'", [](const Var& v) { return gradient(sum(mish(v)), v); }},
  }));
  // Every number between a root and the tails, and the tails to where they underflow.
  std::vector<float> xs;
  for (int i = -60000; i < 30000; ++i) xs.push_back(static_cast<float>(i) * 0x1.a36e2ep-11F);
  for (int i = -110000; i < 0; ++i) xs.push_back(static_cast<float>(i) * 0x1.0624dep-10F);
  Tape tape;
  const Tensor x = Tensor::from(xs, Shape{std::ssize(xs)});
  const Tensor narrow = row.f(tape.parameter(x)).value();
  const Tensor wide = row.f(tape.parameter(x.to(DType::f64))).value();
  double worst = 0, at = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double exact = wide.at(i);
    // Half a unit of a subnormal number is more than its relative error.
    const double unit = std::max(std::abs(exact) * 0x1p-24, 0x1p-149);
    const double error = std::abs(narrow.at(i) - exact) / unit;
    if (!(error <= worst)) {
      worst = error;
      at = x.at(i);
    }
  }
  INFO(row.name << " at " << at << " is off by " << worst << "·2⁻²⁴");
  CHECK(worst <= 5.1);  // compilers differ in the last digits
}

TEST_CASE("f32 functions have the limits of f64", "[elementwise]") {
  const Function f = GENERATE(values<Function>({
      [](const Var& v) { return exp(v); },
      [](const Var& v) { return erf(v); },
      [](const Var& v) { return tanh(v); },
      [](const Var& v) { return sigmoid(v); },
      [](const Var& v) { return softplus(v); },
      [](const Var& v) { return gelu(v); },
      [](const Var& v) { return gelu_tanh(v); },
      [](const Var& v) { return silu(v); },
      [](const Var& v) { return mish(v); },
      [](const Var& v) { return gradient(sum(elu(v)), v); },
      [](const Var& v) { return gradient(sum(gelu(v)), v); },
      [](const Var& v) { return gradient(sum(gelu_tanh(v)), v); },
      [](const Var& v) { return gradient(sum(silu(v)), v); },
      [](const Var& v) { return gradient(sum(mish(v)), v); },
  }));
  // Lanes of one pack take different ways.
  const std::vector<float> xs{-std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::infinity(),
                              std::nanf(""),
                              -3e38F,
                              3e38F,
                              -200,
                              200,
                              0,
                              -0.0F};
  Tape tape;
  const Tensor x = Tensor::from(xs, Shape{std::ssize(xs)});
  const Tensor narrow = f(tape.parameter(x)).value();
  const Tensor wide = f(tape.parameter(x.to(DType::f64))).value().to(DType::f32);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    INFO("at " << xs[i] << ": " << narrow.at(place) << " instead of " << wide.at(place));
    CHECK(are_same(narrow.at(place), wide.at(place)));
  }
}

}  // namespace
}  // namespace palimpsest::activations_test
