#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::second_derivatives_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

using Function = Var (*)(const Var&);

TEST_CASE("second derivatives where a formula could be no number", "[elementwise]") {
  Tape tape;
  const Var zero = tape.parameter(Tensor::scalar(0, DType::f64));
  const Var one = tape.parameter(Tensor::scalar(1, DType::f64));
  const auto second = [](const Var& y, const Var& x) { return gradient(gradient(y, x), x).item(); };
  CHECK(second(pow(zero, 2.0), zero) == 2);
  CHECK(second(pow(zero, 1.0), zero) == 0);
  CHECK(second(pow(zero, 3.0), zero) == 0);
  CHECK(second(pow(zero, one + one), zero) == 2);
  CHECK(gradient(gradient(pow(one + one, zero), one + zero), zero).item() == 0);
  // ∂²(aᵇ)/∂a∂b at b = 0 is 1/a
  const Var a = tape.parameter(Tensor::scalar(4, DType::f64));
  CHECK(gradient(gradient(pow(a, zero), a), zero).item() == 0.25);
  CHECK(second(relu(one), one) == 0);
  CHECK(second(abs(zero), zero) == 0);
}

TEST_CASE("second derivatives of logaddexp at equal and at infinite operands", "[elementwise]") {
  Tape tape;
  const auto second = [&](double number, bool mixed) {
    const Var a = tape.parameter(Tensor::scalar(number, DType::f64));
    const Var b = tape.parameter(Tensor::scalar(number, DType::f64));
    return gradient(gradient(logaddexp(a, b), a), mixed ? b : a).item();
  };
  for (const double number : {-3.5, 0.0, -0.0, 1000.0}) {
    CHECK(second(number, false) == 0.25);
    CHECK(second(number, true) == -0.25);
  }
  for (const double number : {infinity, -infinity}) {
    CHECK(second(number, false) == 0);
    CHECK(second(number, true) == 0);
  }
}

TEST_CASE("second derivatives at infinities are their limits", "[elementwise]") {
  const Function f = GENERATE(values<Function>({
      [](const Var& x) { return erf(x); },
      [](const Var& x) { return erfc(x); },
      [](const Var& x) { return gelu(x); },
      [](const Var& x) { return atan(x); },
      [](const Var& x) { return asinh(x); },
  }));
  for (const DType dtype : {DType::f64, DType::f32, DType::f16}) {
    Tape tape;
    const Var x = tape.parameter(Tensor::from({-infinity, infinity}, {2}).to(dtype));
    const Tensor second = gradient(gradient(sum(f(x)), x), x).value();
    CHECK(second.at(0) == 0);
    CHECK(second.at(1) == 0);
  }
}

TEST_CASE("second derivatives of f32 keep their digits", "[elementwise]") {
  struct Row {
    const char* name;
    Function f;
    double x, second;
  };
  const Row row = GENERATE(values<Row>({
      {"asin", [](const Var& x) { return asin(x); }, 0.00033, 0.0003300000638},
      {"acos", [](const Var& x) { return acos(x); }, 0.00033, -0.0003300000638},
      {"atanh", [](const Var& x) { return atanh(x); }, 0.00033, 0.0006600001635},
      {"asin", [](const Var& x) { return asin(x); }, 1, infinity},
      {"acos", [](const Var& x) { return acos(x); }, 1, -infinity},
      {"acosh", [](const Var& x) { return acosh(x); }, 1, -infinity},
      {"atanh", [](const Var& x) { return atanh(x); }, -1, -infinity},
      {"mish", [](const Var& x) { return mish(x); }, -30, -2.620134431e-12},
      {"mish", [](const Var& x) { return mish(x); }, 2.875, -0.03498626789},
      {"mish", [](const Var& x) { return mish(x); }, 17, -2.193802375e-13},
      {"mish", [](const Var& x) { return mish(x); }, 28, -1.032672863e-22},
      {"mish", [](const Var& x) { return mish(x); }, 35, -1.081321e-28},
      {"gelu_tanh", [](const Var& x) { return gelu_tanh(x); }, 2.75, -0.0520660201},
      {"gelu_tanh", [](const Var& x) { return gelu_tanh(x); }, 5, -9.934132225e-6},
      {"gelu_tanh", [](const Var& x) { return gelu_tanh(x); }, 7, -3.232258407e-13},
      {"silu", [](const Var& x) { return silu(x); }, 2.5, -0.008462156523},
      {"silu", [](const Var& x) { return silu(x); }, 14, -9.978308674e-6},
      {"silu", [](const Var& x) { return silu(x); }, 20, -3.710076488e-8},
  }));
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(row.x));
  const double second = gradient(gradient(row.f(x), x), x).item();
  INFO(row.name << " at " << row.x << ": " << second << " for " << row.second);
  const bool agree = std::abs(second - row.second) <= 1e-5 * std::abs(row.second);
  CHECK((second == row.second || agree));
}

}  // namespace
}  // namespace palimpsest::second_derivatives_test
