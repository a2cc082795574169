#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::elementwise_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

using Function = Var (*)(const Var&);
using Reference = double (*)(double);

double value_at(Function f, double x, DType dtype = DType::f64) {
  Tape tape;
  return f(tape.parameter(Tensor::scalar(x, dtype))).item();
}

double slope_at(Function f, double x, DType dtype = DType::f64) {
  Tape tape;
  const Var v = tape.parameter(Tensor::scalar(x, dtype));
  return gradient(f(v), v).item();
}

bool agree(double a, double b, double tolerance) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= tolerance * std::abs(b);
}

/// Numbers between `low` and `high`, both large and small in magnitude if 0 is among them.
std::vector<double> samples(double low, double high) {
  std::vector<double> xs;
  for (int i = 0; i <= 997; ++i) xs.push_back(low + (high - low) * i / 997);
  for (double tiny = 1; tiny > 1e-30; tiny /= 3) {
    for (const double x : {tiny, -tiny}) {
      if (x > low && x < high) xs.push_back(x);
    }
  }
  return xs;
}

struct Accuracy {
  const char* name;
  Function f;
  Reference reference;
  double low, high;
  double units = 4;  ///< limit of the error in units in the last place, for f32 compared with f64
};

double logistic(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
double log1p_exp(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

TEST_CASE("functions are accurate relative to their values", "[elementwise]") {
  const Accuracy row = GENERATE(values<Accuracy>({
      {"exp", [](const Var& v) { return exp(v); }, [](double x) { return std::exp(x); }, -80, 80},
      {"expm1", [](const Var& v) { return expm1(v); }, [](double x) { return std::expm1(x); }, -20,
       20},
      {"log", [](const Var& v) { return log(v); }, [](double x) { return std::log(x); }, 0, 1000},
      {"log1p", [](const Var& v) { return log1p(v); }, [](double x) { return std::log1p(x); },
       -0.99, 50},
      {"sin", [](const Var& v) { return sin(v); }, [](double x) { return std::sin(x); }, -3, 3},
      {"cos", [](const Var& v) { return cos(v); }, [](double x) { return std::cos(x); }, -1.5, 1.5},
      {"tanh", [](const Var& v) { return tanh(v); }, [](double x) { return std::tanh(x); }, -30,
       30},
      {"sinh", [](const Var& v) { return sinh(v); }, [](double x) { return std::sinh(x); }, -20,
       20},
      {"erf", [](const Var& v) { return erf(v); }, [](double x) { return std::erf(x); }, -6, 6},
      {"sqrt", [](const Var& v) { return sqrt(v); }, [](double x) { return std::sqrt(x); }, 0, 1e9},
      {"rsqrt", [](const Var& v) { return rsqrt(v); }, [](double x) { return 1 / std::sqrt(x); },
       1e-6, 1e6},
      {"power", [](const Var& v) { return pow(v, 2.5); }, [](double x) { return std::pow(x, 2.5); },
       0, 100},
      {"sigmoid", [](const Var& v) { return sigmoid(v); }, logistic, -80, 80},
      {"softplus", [](const Var& v) { return softplus(v); }, log1p_exp, -80, 80},
      {"silu", [](const Var& v) { return silu(v); }, [](double x) { return x * logistic(x); }, -80,
       80},
      {"mish", [](const Var& v) { return mish(v); },
       [](double x) { return x * std::tanh(log1p_exp(x)); }, -80, 80},
      {"elu", [](const Var& v) { return elu(v); },
       [](double x) { return x > 0 ? x : std::expm1(x); }, -20, 20},
      {"gelu", [](const Var& v) { return gelu(v); },
       [](double x) { return x / 2 * std::erfc(-x * std::sqrt(0.5)); }, -1, 20, 8},
  }));
  const DType dtype = GENERATE(DType::f64, DType::f32);
  const double unit = dtype == DType::f64 ? 0x1p-52 : 0x1p-23;
  const std::vector<double> xs = samples(row.low, row.high);
  Tape tape;
  const Tensor x = Tensor::from(xs, Shape{static_cast<std::int64_t>(xs.size())}).to(dtype);
  const Tensor y = row.f(tape.constant(x)).value();
  double worst = 0, at = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double exact = row.reference(x.at(i));
    const double error = std::abs(y.at(i) - exact) / std::max(std::abs(exact), 1e-37) / unit;
    if (!(error <= worst)) {
      worst = error;
      at = x.at(i);
    }
  }
  INFO(row.name << " " << name_of(dtype) << " at " << at << " is off by " << worst << " units");
  CHECK(worst <= row.units);
}

TEST_CASE("values and derivatives at the ends and at kinks", "[elementwise]") {
  struct Row {
    const char* name;
    Function f;
    double x, value, slope;
  };
  const Row row = GENERATE(values<Row>({
      {"softplus", [](const Var& v) { return softplus(v); }, 1000, 1000, 1},
      {"softplus", [](const Var& v) { return softplus(v); }, -1000, 0, 0},
      {"softplus", [](const Var& v) { return softplus(v); }, 0, std::log(2.0), 0.5},
      {"sigmoid", [](const Var& v) { return sigmoid(v); }, 1000, 1, 0},
      {"sigmoid", [](const Var& v) { return sigmoid(v); }, -1000, 0, 0},
      {"silu", [](const Var& v) { return silu(v); }, 1000, 1000, 1},
      {"mish", [](const Var& v) { return mish(v); }, 1000, 1000, 1},
      {"gelu", [](const Var& v) { return gelu(v); }, 1000, 1000, 1},
      {"gelu_tanh", [](const Var& v) { return gelu_tanh(v); }, 1000, 1000, 1},
      {"tanh", [](const Var& v) { return tanh(v); }, 1000, 1, 0},
      {"log1p", [](const Var& v) { return log1p(v); }, 1e-18, 1e-18, 1},
      {"expm1", [](const Var& v) { return expm1(v); }, 1e-18, 1e-18, 1},
      {"expm1", [](const Var& v) { return expm1(v); }, -1000, -1, 0},
      {"log", [](const Var& v) { return log(v); }, 0, -infinity, infinity},
      {"abs", [](const Var& v) { return abs(v); }, 0, 0, 0},
      {"relu", [](const Var& v) { return relu(v); }, 0, 0, 0},
      {"leaky_relu", [](const Var& v) { return leaky_relu(v, 0.25); }, 0, 0, 0.25},
      {"elu", [](const Var& v) { return elu(v, 2); }, 0, 0, 2},
      {"elu", [](const Var& v) { return elu(v, 2); }, -1000, -2, 0},
      {"sqrt", [](const Var& v) { return sqrt(v); }, 0, 0, infinity},
      {"clamp", [](const Var& v) { return clamp(v, -1, 2); }, 2, 2, 1},
      {"clamp", [](const Var& v) { return clamp(v, -1, 2); }, -1.5, -1, 0},
      {"clamp", [](const Var& v) { return clamp(v, -infinity, 2); }, -1e300, -1e300, 1},
      {"power", [](const Var& v) { return pow(v, 0); }, 0, 1, 0},
      {"power", [](const Var& v) { return pow(v, 1); }, 0, 0, 1},
      {"power", [](const Var& v) { return pow(v, 3); }, -2, -8, 12},
      {"pow", [](const Var& v) { return pow(2, v); }, -1, 0.5, 0.5 * std::log(2.0)},
      {"pow", [](const Var& v) { return pow(0, v); }, 2, 0, 0},
      {"round", [](const Var& v) { return round(v); }, 2.5, 2, 0},
      {"round", [](const Var& v) { return round(v); }, -3.5, -4, 0},
      {"floor", [](const Var& v) { return floor(v); }, -0.5, -1, 0},
      {"ceil", [](const Var& v) { return ceil(v); }, 1e300, 1e300, 0},
      {"sign", [](const Var& v) { return sign(v); }, -0.0, 0, 0},
      {"maximum", [](const Var& v) { return maximum(v, 3); }, 3, 3, 0.5},
      {"minimum", [](const Var& v) { return minimum(v, v); }, 7, 7, 1},
  }));
  INFO(row.name << " at " << row.x);
  const double value = value_at(row.f, row.x);
  const double slope = slope_at(row.f, row.x);
  INFO("value " << value << ", slope " << slope);
  CHECK(agree(value, row.value, 1e-14));
  CHECK(agree(slope, row.slope, 1e-14));
}

TEST_CASE("exponentials too small to be stored are 0", "[elementwise]") {
  const DType dtype = GENERATE(DType::f64, DType::f32);
  Tape tape;
  const Tensor x = Tensor::from<double>({-infinity, -1e30, -800}, {3}).to(dtype);
  const Tensor y = exp(tape.constant(x)).value();
  for (std::int64_t i = 0; i < 3; ++i) CHECK(y.at(i) == 0);
}

TEST_CASE("what is not a number stays so", "[elementwise]") {
  const Function f = GENERATE(values<Function>({
      [](const Var& v) { return relu(v); },
      [](const Var& v) { return sign(v); },
      [](const Var& v) { return exp(v); },
      [](const Var& v) { return clamp(v, 0, 1); },
      [](const Var& v) { return elu(v); },
      [](const Var& v) { return softplus(v); },
      [](const Var& v) { return sigmoid(v); },
      [](const Var& v) { return tanh(v); },
      [](const Var& v) { return gelu(v); },
      [](const Var& v) { return mish(v); },
      [](const Var& v) { return exp(v); },
      [](const Var& v) { return log(v); },
      [](const Var& v) { return maximum(v, 1); },
      [](const Var& v) { return minimum(v, 1); },
      [](const Var& v) { return floor(v); },
      [](const Var& v) { return v * 0.0; },
  }));
  CHECK(std::isnan(value_at(f, nan)));
  CHECK(std::isnan(value_at(f, nan, DType::f32)));
}

TEST_CASE("powers, losses and acosh have the limits of their formulas", "[elementwise]") {
  const auto slopes = [](double a, double b) {
    Tape tape;
    const Var x = tape.parameter(Tensor::scalar(a, DType::f64));
    const Var y = tape.parameter(Tensor::scalar(b, DType::f64));
    const std::vector<Var> both = gradient(pow(x, y), {x, y});
    return std::array{both[0].item(), both[1].item()};
  };
  CHECK(slopes(0, -2)[1] == -infinity);
  CHECK(slopes(0, 2)[1] == 0);
  CHECK(slopes(0, 0) == std::array{0.0, 0.0});
  CHECK(slopes(infinity, 0)[0] == 0);

  const auto loss = [](double logit, double target) {
    Tape tape;
    return bce_with_logits(tape.constant(Tensor::scalar(logit)),
                           tape.constant(Tensor::scalar(target)))
        .item();
  };
  CHECK(loss(infinity, 0) == infinity);
  CHECK(loss(-infinity, 1) == infinity);
  CHECK(loss(infinity, 1) == 0);
  CHECK(loss(-infinity, 0) == 0);
  CHECK(std::isnan(loss(nan, 0)));
  CHECK(std::isnan(loss(nan, 1)));
  CHECK(std::isnan(loss(2, nan)));
  CHECK(loss(1e30, 1) == 0);
  CHECK(loss(-1e30, 0) == 0);

  const auto steep = [](const Var& x) { return acosh(x); };
  CHECK(agree(slope_at(steep, 1e20, DType::f32), 1e-20, 1e-6));
}

// This contract lets an executor split arrays anywhere.
TEST_CASE("an element's bits depend on its operands, not on its place", "[elementwise]") {
  const DType dtype = GENERATE(DType::f64, DType::f32);
  const Function f = GENERATE(values<Function>({
      [](const Var& v) { return exp(v); },
      [](const Var& v) { return log(abs(v)); },
      [](const Var& v) { return tanh(v); },
      [](const Var& v) { return sin(v); },
      [](const Var& v) { return gelu(v); },
      [](const Var& v) { return mish(v); },
      [](const Var& v) { return pow(abs(v), v); },
      [](const Var& v) { return v / (1.0 + v * v); },
      [](const Var& v) { return gradient(silu(v), v); },
      [](const Var& v) { return gradient(gelu_tanh(v), v); },
  }));
  Tape tape;
  const Tensor x = Tensor::normal({83}, 1, 0, 2, dtype);
  const Tensor whole = f(tape.parameter(x)).value();
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < 83; ++i) {
    const Tensor alone = f(tape.parameter(Tensor::scalar(x.at(i), dtype))).value();
    different += alone.at(0) != whole.at(i);
    const Tensor row = f(tape.parameter(Tensor::full({1, 19}, x.at(i), dtype))).value();
    different += row.at(0) != whole.at(i) || row.at(18) != whole.at(i);
  }
  CHECK(different == 0);
}

TEST_CASE("integers wrap, divide towards zero, and by zero to zero", "[elementwise]") {
  const DType dtype = GENERATE(DType::i64, DType::i32);
  const double least = dtype == DType::i64 ? -0x1p63 : -0x1p31;
  Tape tape;
  const auto constant = [&](std::initializer_list<double> values) {
    return tape.constant(
        Tensor::from(values, Shape{static_cast<std::int64_t>(values.size())}).to(dtype));
  };
  const Var a = constant({7, -7, 5, 0, least});
  const Var b = constant({2, 2, 0, 0, -1});
  const auto equals = [](const Var& v, std::vector<double> expected) {
    const Tensor value = v.value();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(value.at(static_cast<std::int64_t>(i)) == expected[i]);
    }
  };
  equals(a / b, {3, -3, 0, 0, least});
  equals(a / 0, {0, 0, 0, 0, 0});
  equals(maximum(a, b), {7, 2, 5, 0, -1});
  equals(minimum(a, b), {2, -7, 0, 0, least});
  equals(-a, {-7, 7, -5, 0, least});
  equals(10 - a, {3, 17, 5, 10});
  equals(a * 2 + 1, {15, -13, 11, 1, 1});
  equals(a > 0, {1, 0, 1, 0, 0});
  equals(where(a > 0, a, 0), {7, 0, 5, 0, 0});
  CHECK((a / b).dtype() == dtype);
  CHECK((a + tape.constant(Tensor::full({5}, 0.5))).dtype() == DType::f32);
}

TEST_CASE("conditions combine and choose", "[elementwise]") {
  Tape tape;
  const Var x = tape.constant(Tensor::vector({-2, -1, 0, 1, 2}));
  const auto bools = [](std::initializer_list<bool> values) {
    return Tensor::from(values, Shape{static_cast<std::int64_t>(values.size())});
  };
  CHECK(same_bits(logical_and(x > -2, x < 2).value(), bools({false, true, true, true, false})));
  CHECK(same_bits(logical_or(x <= -2, x >= 2).value(), bools({true, false, false, false, true})));
  CHECK(same_bits(logical_not(equal(x, 0)).value(), not_equal(x, 0).value()));
  CHECK(same_bits(where(x >= 0, x, -x).value(), abs(x).value()));
  CHECK(same_bits(where(x > 0, 1, x).value(), Tensor::vector({-2, -1, 0, 1, 1})));
  const Var nothing = tape.constant(Tensor::vector({std::nanf("")}));
  CHECK(same_bits(equal(nothing, nothing).value(), bools({false})));
  CHECK(same_bits(not_equal(nothing, nothing).value(), bools({true})));
}

template <class T>
void check_roots() {
  constexpr T least = std::numeric_limits<T>::denorm_min();
  std::vector<T> xs{0,
                    least,
                    1000 * least,
                    std::numeric_limits<T>::min(),
                    1,
                    4,
                    std::numeric_limits<T>::max(),
                    std::numeric_limits<T>::infinity()};
  for (int i = 0; i < 1000; ++i) xs.push_back(static_cast<T>(0.37 + 0.731 * i));
  Tape tape;
  const Var x = tape.constant(Tensor::from(xs, Shape{std::ssize(xs)}));
  std::vector<T> roots, inverses;
  for (const T number : xs) {
    roots.push_back(std::sqrt(number));
    inverses.push_back(1 / std::sqrt(number));
  }
  CHECK(same_bits(sqrt(x).value(), Tensor::from(roots, x.shape())));
  CHECK(same_bits(rsqrt(x).value(), Tensor::from(inverses, x.shape())));
}

TEST_CASE("roots are the nearest numbers, at the ends of the range too", "[elementwise]") {
  check_roots<float>();
  check_roots<double>();
}

TEST_CASE("f32 functions use the whole range", "[elementwise]") {
  struct Row {
    const char* name;
    Function f;
    double x, value;
  };
  const Row row = GENERATE(values<Row>({
      {"exp", [](const Var& v) { return exp(v); }, 88.375, std::exp(88.375)},
      {"exp", [](const Var& v) { return exp(v); }, 88.71875, std::exp(88.71875)},
      {"exp", [](const Var& v) { return exp(v); }, 88.75, infinity},
      {"exp", [](const Var& v) { return exp(v); }, infinity, infinity},
      {"expm1", [](const Var& v) { return expm1(v); }, 88.5, std::exp(88.5)},
      {"log", [](const Var& v) { return log(v); }, 0x1p-149, std::log(0x1p-149)},
      {"log", [](const Var& v) { return log(v); }, 0x1.5p-130, std::log(0x1.5p-130)},
      {"log", [](const Var& v) { return log(v); }, 0x1p-126, std::log(0x1p-126)},
      {"log", [](const Var& v) { return log(v); }, 0, -infinity},
      {"log", [](const Var& v) { return log(v); }, infinity, infinity},
      {"mish", [](const Var& v) { return mish(v); }, -3e38, 0},
      {"silu", [](const Var& v) { return silu(v); }, -3e38, 0},
      {"gelu'", [](const Var& v) { return gradient(gelu(v), v); }, -3e38, 0},
      {"erf'", [](const Var& v) { return gradient(erf(v), v); }, 1e30, 0},
      {"asin'", [](const Var& v) { return gradient(asin(v), v); }, 0.6, 1.25},
  }));
  INFO(row.name << " of " << row.x << " is " << value_at(row.f, row.x, DType::f32));
  CHECK(agree(value_at(row.f, row.x, DType::f32), row.value, 4e-7));
}

TEST_CASE("f64 logarithms reach the subnormal numbers", "[elementwise]") {
  const Function f = [](const Var& v) { return log(v); };
  CHECK(agree(value_at(f, 0x1p-1074), std::log(0x1p-1074), 1e-15));
}

TEST_CASE("infinities and zeros keep their signs and shares", "[elementwise]") {
  Tape tape;
  const auto numbers = [&](std::initializer_list<float> list) {
    return tape.parameter(Tensor::vector(list));
  };
  const auto inf = std::numeric_limits<float>::infinity();
  const Var a = numbers({inf, -inf, 1, inf});
  const Var b = numbers({inf, -inf, 1, -inf});
  CHECK(same_bits(gradient(maximum(a, b), a).value(), Tensor::vector({0.5, 0.5, 0.5, 1})));
  CHECK(same_bits(gradient(minimum(a, b), a).value(), Tensor::vector({0.5, 0.5, 0.5, 0})));
  const Var signs = numbers({1, -1});
  CHECK(same_bits((signs / -0.0).value(), Tensor::vector({-inf, inf})));
  CHECK(same_bits((signs * -0.0).value(), Tensor::vector({-0.0f, 0.0f})));
  CHECK(same_bits((-numbers({0.0f, -0.0f})).value(), Tensor::vector({-0.0f, 0.0f})));
  CHECK(same_bits((signs * 0.0).value(), Tensor::vector({0.0f, -0.0f})));
}

TEST_CASE("tails keep their relative accuracy", "[elementwise]") {
  struct Row {
    const char* name;
    Function f;
    double x, value, tolerance;
  };
  const Row row = GENERATE(values<Row>({
      {"elu'", [](const Var& v) { return gradient(elu(v), v); }, -20, std::exp(-20.0), 2e-7},
      {"elu'", [](const Var& v) { return gradient(elu(v), v); }, -80, std::exp(-80.0), 2e-7},
      {"gelu", [](const Var& v) { return gelu(v); }, -5.651F, -4.50715484e-8, 1e-5},
      {"gelu", [](const Var& v) { return gelu(v); }, -13, -13 * 6.117164399549879e-39, 1e-6},
      {"gelu'", [](const Var& v) { return gradient(gelu(v), v); }, -8, -3.97960726e-14, 1e-5},
      {"gelu_tanh", [](const Var& v) { return gelu_tanh(v); }, -8,
       -8 / (1 + std::exp(49.29981890441724)), 1e-4},
      {"silu", [](const Var& v) { return silu(v); }, -90, -90 * std::exp(-90.0), 1e-6},
      {"mish", [](const Var& v) { return mish(v); }, -88, -88 * std::exp(-88.0), 1e-6},
      {"mish", [](const Var& v) { return mish(v); }, -90, -90 * std::exp(-90.0), 1e-6},
      {"exp", [](const Var& v) { return exp(v); }, -100, 27 * 0x1p-149, 0},
      {"exp", [](const Var& v) { return exp(v); }, -87.5, std::exp(-87.5), 1e-6},
      {"softplus", [](const Var& v) { return softplus(v); }, -100, 27 * 0x1p-149, 0},
      {"sigmoid", [](const Var& v) { return sigmoid(v); }, -100, 27 * 0x1p-149, 0},
  }));
  const double value = value_at(row.f, row.x, DType::f32);
  INFO(row.name << " at " << row.x << " is " << value);
  CHECK(agree(value, row.value, row.tolerance));
}

TEST_CASE("the slope of elu is right for every number of f16", "[elementwise]") {
  std::vector<float> xs;
  for (std::uint32_t bits = 0x8000; bits < 0xfc00; ++bits) {
    xs.push_back(static_cast<float>(std::bit_cast<Float16>(static_cast<std::uint16_t>(bits))));
  }
  Tape tape;
  const Var x = tape.parameter(Tensor::from(xs, Shape{std::ssize(xs)}).to(DType::f16));
  const Tensor slope = gradient(sum(elu(x)), x).value();
  int wrong = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double exact = std::exp(double{xs[i]});
    // Half the distance between neighbouring f16 numbers, plus the error of f32.
    const double unit = std::max(exact * 0x1p-11, 0x1p-25) * 1.001;
    wrong += !(std::abs(slope.at(static_cast<std::int64_t>(i)) - exact) <= unit);
  }
  CHECK(wrong == 0);
}

TEST_CASE("powers of negative zeros and infinities have the signs of IEEE 754", "[elementwise]") {
  const DType dtype = GENERATE(DType::f64, DType::f32);
  struct Row {
    double base, exponent, power;
  };
  const Row row = GENERATE(values<Row>({
      {-0.0, -1, -infinity},
      {-0.0, -3, -infinity},
      {-0.0, -2, infinity},
      {-0.0, -0.5, infinity},
      {-0.0, 3, -0.0},
      {-0.0, 2.5, 0},
      {-infinity, -1, -0.0},
      {-infinity, -2, 0},
      {-infinity, 3, -infinity},
      {-infinity, 0.5, infinity},
      {-2, 3, -8},
      {-2, 0.5, nan},
      {1, nan, 1},
      {nan, 0, 1},
      {-1, infinity, 1},
      {0.5, -infinity, infinity},
  }));
  INFO(row.base << " to the power " << row.exponent);
  const auto fits = [&](const Var& power) {
    const double y = power.item();
    return (std::isnan(y) && std::isnan(row.power)) ||
           (y == row.power && std::signbit(y) == std::signbit(row.power));
  };
  Tape tape;
  const Var base = tape.parameter(Tensor::scalar(row.base, dtype));
  const Var exponent = tape.parameter(Tensor::scalar(row.exponent, dtype));
  CHECK(fits(pow(base, exponent)));
  CHECK(fits(pow(row.base, exponent)));
  CHECK(fits(pow(base, row.exponent)));
}

TEST_CASE("zeros keep their signs", "[elementwise]") {
  const DType dtype = GENERATE(DType::f64, DType::f32);
  const Function f = GENERATE(values<Function>({
      [](const Var& v) { return expm1(v); },
      [](const Var& v) { return log1p(v); },
      [](const Var& v) { return erf(v); },
      [](const Var& v) { return tanh(v); },
      [](const Var& v) { return gelu(v); },
      [](const Var& v) { return gelu_tanh(v); },
      [](const Var& v) { return silu(v); },
      [](const Var& v) { return mish(v); },
  }));
  for (const double zero : {0.0, -0.0}) {
    const double y = value_at(f, zero, dtype);
    CHECK(y == 0);
    CHECK(std::signbit(y) == std::signbit(zero));
  }
}

TEST_CASE("results that underflow below 0 are -0", "[elementwise]") {
  const Function f = GENERATE(values<Function>({
      [](const Var& v) { return gelu(v); },
      [](const Var& v) { return gelu_tanh(v); },
      [](const Var& v) { return silu(v); },
  }));
  const double y = value_at(f, -0x1p-149, DType::f32);
  CHECK(y == 0);
  CHECK(std::signbit(y));
}

}  // namespace
}  // namespace palimpsest::elementwise_test
