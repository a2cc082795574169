#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::special_functions_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

using Catch::Matchers::WithinRel;
using Function = Var (*)(const Var&);

bool agree(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= 1e-13 * std::abs(b);
}

struct Row {
  const char* name;
  Function f;
  double x, value, slope;
};

void check(const Row& row) {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(row.x, DType::f64));
  const Var y = row.f(x);
  const double slope = gradient(y, x).item();
  INFO(row.name << " at " << row.x << ": " << y.item() << ", slope " << slope);
  CHECK(agree(y.item(), row.value));
  CHECK(agree(slope, row.slope));
}

TEST_CASE("the derivative of erfinv is accurate up to 1", "[elementwise]") {
  struct Known {
    double x, slope, curvature;
  };
  for (const auto& [at, slope, curvature] :
       {Known{0x1p-1022, 0.88622692545275801365, 3.0974852653360009e-308},
        Known{1 - 0x1p-53, 757347920544973.98025, 6.726421479466188768e30},
        Known{0.9999, 1715.6895961763136915, 16196012.753463955203},
        Known{-0.25, 0.93237823460597253384, -0.39174068461606698177}}) {
    Tape tape;
    const Var x = tape.parameter(Tensor::scalar(at, DType::f64));
    const Var first = gradient(erfinv(x), x);
    CAPTURE(at);
    CHECK_THAT(first.item(), WithinRel(slope, 6e-16));
    CHECK_THAT(gradient(first, x).item(), WithinRel(curvature, 1e-14));
  }
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(1 - 0x1p-24, DType::f32));
  CHECK_THAT(gradient(erfinv(x), x).item(), WithinRel(2120848.0082420370992, 3e-7));
}

TEST_CASE("special functions have their known values", "[elementwise]") {
  const double euler = std::numbers::egamma;
  const double root_pi = std::sqrt(std::numbers::pi);
  const double zeta3 = 1.2020569031595942854;
  const double trigamma = std::numbers::pi * std::numbers::pi / 6;
  const Row rows[] = {
      {"exp2", [](const Var& v) { return exp2(v); }, -1074, 0x1p-1074, 0x1p-1074},
      {"exp2", [](const Var& v) { return exp2(v); }, 10, 1024, 1024 * std::numbers::ln2},
      {"exp2", [](const Var& v) { return exp2(v); }, 1024, infinity, infinity},
      {"log2", [](const Var& v) { return log2(v); }, 0x1p-1074, -1074,
       std::exp2(1074) / std::numbers::ln2},
      {"log2", [](const Var& v) { return log2(v); }, 8, 3, 0.125 / std::numbers::ln2},
      {"log10", [](const Var& v) { return log10(v); }, 1000, 3, 1e-3 / std::numbers::ln10},
      {"log10", [](const Var& v) { return log10(v); }, 0, -infinity, infinity},
      {"erfc", [](const Var& v) { return erfc(v); }, 10, 2.0884875837625447570e-45,
       -2 / root_pi * std::exp(-100)},
      {"erfc", [](const Var& v) { return erfc(v); }, -infinity, 2, 0},
      {"logit", [](const Var& v) { return logit(v); }, 0.5, 0, 4},
      {"logit", [](const Var& v) { return logit(v); }, 0, -infinity, infinity},
      {"logit", [](const Var& v) { return logit(v); }, 1, infinity, infinity},
      {"logit", [](const Var& v) { return logit(v); }, 0.5 + 0x1p-50, 0x1p-48, 4},
      {"lgamma", [](const Var& v) { return lgamma(v); }, 1, 0, -euler},
      {"lgamma", [](const Var& v) { return lgamma(v); }, 0.5, std::log(root_pi),
       -euler - 2 * std::numbers::ln2},
      {"digamma", [](const Var& v) { return digamma(v); }, 1, -euler, trigamma},
      {"digamma", [](const Var& v) { return digamma(v); }, 0, -infinity, infinity},
      {"digamma", [](const Var& v) { return digamma(v); }, -3, nan, infinity},
      {"digamma", [](const Var& v) { return digamma(v); }, infinity, infinity, 0},
      {"polygamma", [](const Var& v) { return polygamma(1, v); }, 1, trigamma, -2 * zeta3},
      {"polygamma", [](const Var& v) { return polygamma(2, v); }, 1, -2 * zeta3,
       std::pow(std::numbers::pi, 4) / 15},
      {"erfinv", [](const Var& v) { return erfinv(v); }, 0, 0, root_pi / 2},
      {"erfinv", [](const Var& v) { return erfinv(v); }, -1, -infinity, infinity},
      {"erfinv", [](const Var& v) { return erfinv(v); }, 2, nan, nan},
      {"i0", [](const Var& v) { return i0(v); }, 0, 1, 0},
      {"i0e", [](const Var& v) { return i0e(v); }, 0, 1, 0},
      {"i1", [](const Var& v) { return i1(v); }, 1e-200, 5e-201, 0.5},
      {"i1e", [](const Var& v) { return i1e(v); }, 0, 0, 0.5},
      {"i0e", [](const Var& v) { return i0e(v); }, infinity, 0, 0},
      {"i1", [](const Var& v) { return i1(v); }, -800, -infinity, infinity},
      {"sinc", [](const Var& v) { return sinc(v); }, 0, 1, 0},
      {"sinc", [](const Var& v) { return sinc(v); }, 3, 0, -1.0 / 3},
      {"sinc", [](const Var& v) { return sinc(v); }, 1e-200, 1,
       -std::numbers::pi * std::numbers::pi / 3 * 1e-200},
      {"softsign", [](const Var& v) { return softsign(v); }, 1e300, 1, 0},
      {"hardtanh", [](const Var& v) { return hardtanh(v); }, 1, 1, 0},
      {"tanhshrink", [](const Var& v) { return tanhshrink(v); }, 1e-9, 0, 1e-18},
      {"trunc", [](const Var& v) { return trunc(v); }, -2.75, -2, 0},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("a number has the same bits alone and among others", "[elementwise]") {
  const std::pair<const char*, Function> functions[] = {
      {"sin", [](const Var& v) { return sin(v); }},
      {"cos", [](const Var& v) { return cos(v); }},
      {"lgamma", [](const Var& v) { return lgamma(v); }},
      {"digamma", [](const Var& v) { return digamma(v); }},
      {"erfinv", [](const Var& v) { return erfinv(v); }},
      {"i0", [](const Var& v) { return i0(v); }},
      {"i1", [](const Var& v) { return i1(v); }},
      {"i0e", [](const Var& v) { return i0e(v); }},
      {"I3", [](const Var& v) { return bessel_i(3, false, v); }}};
  const DType dtype = GENERATE(DType::f32, DType::f64);
  // Numbers of all ranges that the formulas tell apart, so that each vector has several of them.
  std::vector<double> numbers = {0,   -0.0, infinity, -infinity, nan,  1,    -1,    2,     -3,
                                 0.9, -0.1, 0.5,      0.99999,   1e-9, 1e-5, 1e300, 5e-324};
  for (int i = 0; i < 300; ++i) numbers.push_back(std::ldexp(std::sin(i * 0.7), i * 7 % 40 - 12));
  const auto count = static_cast<std::int64_t>(numbers.size());
  for (const auto& [name, f] : functions) {
    Tape tape;
    const Tensor x = Tensor::from(numbers, {count}).to(dtype);
    const Tensor all = f(tape.constant(x)).value();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const Tensor one = f(tape.constant(Tensor::scalar(x.at(i), DType::f64).to(dtype))).value();
      const double a = one.item(), b = all.at(i);
      if (!(std::isnan(a) && std::isnan(b)) && (a != b || std::signbit(a) != std::signbit(b)))
        ++wrong;
    }
    CAPTURE(name, name_of(dtype));
    CHECK(wrong == 0);
  }
}

TEST_CASE("sines and cosines are accurate near multiples of a quarter turn", "[elementwise]") {
  Tape tape;
  std::vector<double> numbers = {0x1p20, 0x1.fffffffffffffp19, 1e22, 6381956970095103.0};
  for (int i = 1; i < 600; ++i) {
    numbers.push_back(i * (std::numbers::pi / 2));
    numbers.push_back(i * 1103 * (std::numbers::pi / 2));
    numbers.push_back(355.0 * i);
  }
  const Var x = tape.constant(Tensor::from(numbers, {static_cast<std::int64_t>(numbers.size())}));
  const Tensor sines = sin(-x).value(), cosines = cos(-x).value();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    CAPTURE(numbers[i]);
    CHECK_THAT(sines.at(at), Catch::Matchers::WithinULP(-std::sin(numbers[i]), 1));
    CHECK_THAT(cosines.at(at), Catch::Matchers::WithinULP(std::cos(numbers[i]), 1));
  }
}

TEST_CASE("derivatives of sinc and of Bessel functions are accurate near 0", "[elementwise]") {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(1e-3));
  const auto second = [&](const Var& y) { return gradient(gradient(y, x), x).item(); };
  const double pi = std::numbers::pi;
  CHECK(std::abs(second(sinc(x)) / (-pi * pi / 3) - 1) < 1e-5);
  CHECK(std::abs(gradient(sinc(x), x).item() / (-pi * pi / 3 * 1e-3) - 1) < 1e-5);
  CHECK(std::abs(second(i1(x)) / (0.375 * 1e-3) - 1) < 1e-5);
  CHECK(std::abs(gradient(lgamma(x + 1.0), x).item() + 0.57557) < 1e-4);
}

TEST_CASE("functions of two variables at special numbers", "[elementwise]") {
  struct Pair {
    const char* name;
    Var (*f)(const Var&, const Var&);
    double a, b, value, da, db;
  };
  const auto hypotenuse = [](const Var& a, const Var& b) { return hypot(a, b); };
  const auto log_sum = [](const Var& a, const Var& b) { return logaddexp(a, b); };
  const auto x_log_y = [](const Var& a, const Var& b) { return xlogy(a, b); };
  const auto rest = [](const Var& a, const Var& b) { return fmod(a, b); };
  const auto floor_rest = [](const Var& a, const Var& b) { return remainder(a, b); };
  const double root_pi = std::sqrt(std::numbers::pi);
  const auto lower = [](const Var& a, const Var& b) { return igamma(a, b); };
  const auto upper = [](const Var& a, const Var& b) { return igammac(a, b); };
  const auto signed_as = [](const Var& a, const Var& b) { return copysign(a, b); };
  const Pair rows[] = {
      {"hypot", hypotenuse, 0, 0, 0, 0, 0},
      {"hypot", hypotenuse, 3e200, 4e200, 5e200, 0.6, 0.8},
      {"hypot", hypotenuse, infinity, nan, infinity, nan, nan},
      {"logaddexp", log_sum, -infinity, -infinity, -infinity, 0, 0},
      {"logaddexp", log_sum, infinity, infinity, infinity, 0.5, 0.5},
      {"logaddexp", log_sum, -infinity, nan, nan, nan, nan},
      {"logaddexp", log_sum, -infinity, 2, 2, 0, 1},
      {"logaddexp", log_sum, 1000, 1000, 1000 + std::numbers::ln2, 0.5, 0.5},
      {"xlogy", x_log_y, 0, 0, 0, 0, 0},
      {"xlogy", x_log_y, 0, infinity, 0, infinity, 0},
      {"xlogy", x_log_y, 0, nan, nan, nan, nan},
      {"xlogy", x_log_y, 2, 0, -infinity, -infinity, infinity},
      {"fmod", rest, -7.5, 2, -1.5, 1, 3},
      {"fmod", rest, 5, infinity, 5, 1, 0},
      {"fmod", rest, 5, 0, nan, 1, nan},
      {"remainder", floor_rest, -7.5, 2, 0.5, 1, 4},
      {"remainder", floor_rest, 7.5, -2, -0.5, 1, 4},
      {"remainder", floor_rest, 6, 3, 0, 1, -2},
      {"copysign", signed_as, 3, -0.0, -3, -1, 0},
      {"copysign", signed_as, -3, -2, -3, 1, 0},
      {"copysign", signed_as, 0, 1, 0, 0, 0},
      {"igamma", lower, 0, 1, 1, nan, 0},
      {"igamma", lower, 1, 0, 0, 0, 1},
      {"igamma", lower, 1, 2, 1 - std::exp(-2), -0.2208254262118594, std::exp(-2)},
      {"igamma", lower, 3, infinity, 1, nan, nan},
      {"igammac", upper, 0.5, 4, 0.0046777349810472658, 0.01656597534663007,
       -std::exp(-4) / 2 / root_pi},
  };
  for (const Pair& row : rows) {
    Tape tape;
    const Var a = tape.parameter(Tensor::scalar(row.a, DType::f64));
    const Var b = tape.parameter(Tensor::scalar(row.b, DType::f64));
    const Var y = row.f(a, b);
    const auto slopes = gradient(y, {a, b});
    INFO(row.name << " of " << row.a << " and " << row.b << ": " << y.item() << ", slopes "
                  << slopes[0].item() << " and " << slopes[1].item());
    CHECK(agree(y.item(), row.value));
    CHECK(agree(slopes[0].item(), row.da));
    CHECK(agree(slopes[1].item(), row.db));
  }
}

TEST_CASE("rests of integer divisions", "[elementwise]") {
  const DType dtype = GENERATE(DType::i32, DType::i64);
  Tape tape;
  const double lowest = dtype == DType::i32 ? -0x1p31 : -0x1p63;
  const Var a = tape.constant(Tensor::from<double>({7, -7, 7, -7, 5, lowest}, {6}).to(dtype));
  const Var b = tape.constant(Tensor::from<double>({3, 3, -3, -3, 0, -1}, {6}).to(dtype));
  const auto elements = [](const Var& y) {
    std::vector<double> list;
    for (std::int64_t i = 0; i < y.value().elements(); ++i) list.push_back(y.value().at(i));
    return list;
  };
  CHECK(elements(fmod(a, b)) == std::vector<double>{1, -1, 1, -1, 5, 0});
  CHECK(elements(remainder(a, b)) == std::vector<double>{1, 2, -2, -1, 5, 0});
  CHECK(elements(floor_divide(a, b)) == std::vector<double>{2, -3, -3, 2, 0, lowest});
}

TEST_CASE("incomplete gamma and zeta functions of one half, of whole and of large numbers",
          "[elementwise]") {
  Tape tape;
  const auto at = [&](auto f, double a, double b) {
    const Var x = tape.constant(Tensor::scalar(a, DType::f64));
    return f(x, tape.constant(Tensor::scalar(b, DType::f64))).item();
  };
  const auto lower = [](const Var& a, const Var& x) { return igamma(a, x); };
  const auto upper = [](const Var& a, const Var& x) { return igammac(a, x); };
  const auto of_zeta = [](const Var& x, const Var& q) { return zeta(x, q); };
  for (const double x : {0.01, 0.7, 3.0, 20.0}) {
    CHECK(std::abs(at(lower, 0.5, x) / std::erf(std::sqrt(x)) - 1) < 1e-14);
    CHECK(std::abs(at(upper, 0.5, x) / std::erfc(std::sqrt(x)) - 1) < 1e-13);
    // Q(n, x) is the probability of fewer than n events.
    const double n = 30;
    double term = std::exp(-x), sum = 0;
    for (int k = 0; k < 30; term *= x / ++k) sum += term;
    CHECK(std::abs(at(upper, n, x) / sum - 1) < 1e-14);
  }
  CHECK(std::abs(at(lower, 1e7, 1e7 + 3000) - 0.8286118293315) < 1e-11);
  CHECK(std::abs(at(lower, 1e7, 1e7) + at(upper, 1e7, 1e7) - 1) < 1e-15);
  CHECK(std::isnan(at(lower, -1, 1)));
  // The derivative by a is NaN below 0, too, and ends.
  for (const double below : {-1.0, -1e300, -infinity}) {
    const Var a = tape.parameter(Tensor::scalar(below, DType::f64));
    const Var whole = tape.constant(Tensor::scalar(1, DType::f64));
    CHECK(std::isnan(gradient(igamma(a, whole), a).item()));
    CHECK(std::isnan(gradient(igammac(a, whole), a).item()));
  }
  CHECK(std::isnan(at(upper, 1, -1)));
  CHECK(std::isnan(at(lower, 0, 0)));
  const double pi = std::numbers::pi;
  CHECK(agree(at(of_zeta, 2, 1), pi * pi / 6));
  CHECK(agree(at(of_zeta, 2, 0.5), pi * pi / 2));
  CHECK(agree(at(of_zeta, 2, -0.5), pi * pi / 2 + 4));
  CHECK(agree(at(of_zeta, 3, -0.5), 7 * 1.2020569031595942854 - 8));
  CHECK(agree(at(of_zeta, 200, -1.75), std::pow(0.25, -200)));
  CHECK(at(of_zeta, 1, 2) == infinity);
  CHECK(at(of_zeta, 3, -2) == infinity);
  CHECK(std::isnan(at(of_zeta, 0.5, 2)));
  CHECK(std::isnan(at(of_zeta, 2.5, -0.5)));
  const Var x = tape.parameter(Tensor::scalar(2, DType::f64));
  check_error([&] { gradient(zeta(x, x), x); }, {"zeta", "no derivative", "stop_gradient"});
  check_error(
      [&] {
        igamma(x, tape.constant(Tensor::ones({2}, DType::boolean))) +
            igamma(tape.constant(Tensor::arange(2)), tape.constant(Tensor::arange(2)));
      },
      {"igamma"});
}

TEST_CASE("special functions refuse arguments that they cannot take", "[elementwise]") {
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(1));
  const Var whole = tape.constant(Tensor::arange(3));
  check_error([&] { polygamma(-1, x); }, {"polygamma", "order", "give 0"});
  check_error([&] { bessel_i(-2, true, x); }, {"bessel_i", "order"});
  check_error([&] { spherical_bessel_j(-2, true, x); }, {"spherical_bessel_j", "order"});
  check_error([&] { hardtanh(x, 2, 1); }, {"hardtanh", "above the upper bound", "swap them"});
  check_error([&] { lgamma(whole); }, {"lgamma", "cast"});
  check_error([&] { logaddexp(whole, whole); }, {"logaddexp", "takes floating dtypes"});
  check_error([&] { xlogy(whole, whole); }, {"xlogy", "takes floating dtypes"});
}

}  // namespace
}  // namespace palimpsest::special_functions_test
