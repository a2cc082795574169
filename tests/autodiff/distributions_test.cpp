#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "autodiff/gradcheck.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"

namespace palimpsest::distributions_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// The largest distance between the empirical distribution function of x and the function F
/// (Kolmogorov, 1933).
template <class F>
double distance_from(const Var& x, F distribution) {
  const Tensor value = x.value().to(DType::f64);
  const auto data = value.data<double>();
  std::vector<double> sorted(data.begin(), data.end());
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(sorted.size());
  double largest = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double here = distribution(sorted[i]);
    const auto before = static_cast<double>(i);
    largest = std::max({largest, std::abs(here - before / n), std::abs(here - (before + 1) / n)});
  }
  return largest;
}

double normal_cdf(double z) { return std::erfc(-z / std::sqrt(2)) / 2; }

TEST_CASE("continuous distributions have their distribution functions") {
  Tape tape;
  tape.set_seed(4);
  const Shape many{5000};
  const double far = 1.95 / std::sqrt(5000);  // exceeded with a probability of 0.001
  const DType dtype = GENERATE(DType::f64, DType::f32);
  const auto all = [&](double x) { return full(tape, many, x, dtype); };
  CHECK(distance_from(exponential(tape, many, 2, dtype),
                      [](double x) { return 1 - std::exp(-2 * x); }) < far);
  CHECK(distance_from(laplace(tape, many, 1, 2, dtype), [](double x) {
          const double half = std::exp(-std::abs(x - 1) / 2) / 2;
          return x < 1 ? half : 1 - half;
        }) < far);
  CHECK(distance_from(gumbel(tape, many, 1, 2, dtype),
                      [](double x) { return std::exp(-std::exp(-(x - 1) / 2)); }) < far);
  CHECK(distance_from(cauchy(tape, many, 1, 2, dtype),
                      [](double x) { return 0.5 + std::atan((x - 1) / 2) / std::acos(-1); }) < far);
  CHECK(distance_from(normal(all(1), all(2)), [](double x) { return normal_cdf((x - 1) / 2); }) <
        far);
  CHECK(distance_from(truncated_normal(tape, many, 0, 1, -1, 2, dtype), [](double x) {
          return (normal_cdf(x) - normal_cdf(-1)) / (normal_cdf(2) - normal_cdf(-1));
        }) < far);
  // far out in the tail, where the excess is almost exponential
  CHECK(distance_from(truncated_normal(tape, many, 0, 1, 9, infinity, dtype), [](double x) {
          return 1 - std::erfc(x / std::sqrt(2)) / std::erfc(9 / std::sqrt(2));
        }) < far);
  CHECK(distance_from(gamma(all(2)), [](double x) { return 1 - (1 + x) * std::exp(-x); }) < far);
  CHECK(distance_from(gamma(tape, many, 0.5, 3, dtype),
                      [](double x) { return std::erf(std::sqrt(x / 3)); }) < far);
  CHECK(distance_from(beta(all(2), all(3)),
                      [](double x) { return x * x * (6 - 8 * x + 3 * x * x); }) < far);
  CHECK(distance_from(gamma(all(3e5)), [](double x) {
          return normal_cdf((std::cbrt(x / 3e5) - 1 + 1 / 27e5) * 3 * std::sqrt(3e5));
        }) < far);
}

TEST_CASE("small concentrations give finite logarithms and betas") {
  Tape tape;
  const Var small = full(tape, {100}, 1e-3);
  CHECK(std::isfinite(min(log_gamma_variate(small)).item()));
  const Var b = beta(small, small);
  CHECK(sum(cast(equal(b, b), DType::i64)).item<std::int64_t>() == 100);
  CHECK_THAT(sum(dirichlet(full(tape, {50}, 0.01))).item(), WithinAbs(1, 1e-6));
}

TEST_CASE("discrete distributions have their frequencies") {
  Tape tape;
  tape.set_seed(5);
  const std::int64_t n = 20000;
  const auto share = [&](const Var& x, double value) {
    return mean(cast(equal(x, full_like(x, value)), DType::f64)).item();
  };
  for (const double rate : {0.5, 30.0}) {
    const Var y = cast(poisson(full(tape, {n}, rate)), DType::f64);
    CHECK_THAT(mean(y).item(), WithinAbs(rate, 0.04 * std::sqrt(rate)));
    CHECK_THAT(variance(y).item(), WithinAbs(rate, 0.05 * rate));
    const double mode = std::floor(rate);
    CHECK_THAT(share(y, mode),
               WithinAbs(std::exp(mode * std::log(rate) - rate - std::lgamma(mode + 1)), 0.015));
  }
  CHECK(sum(poisson(full(tape, {10}, 0))).item() == 0);
  const Var large = cast(poisson(full(tape, {n}, 2e5)), DType::f64);
  CHECK_THAT(mean(large).item(), WithinAbs(2e5, 20));
  const Var r = randint(tape, -2, 3, {n}, DType::i32);
  CHECK(r.dtype() == DType::i32);
  for (int k = -2; k < 3; ++k) CHECK_THAT(share(r, k), WithinAbs(0.2, 0.015));
  const Tensor logits = Tensor::from(std::vector<float>{0, std::log(3.0F), -9e9F}, {3});
  const Var c = categorical(broadcast_to(tape.constant(logits), {n, 3}));
  CHECK(c.shape() == Shape{n});
  CHECK_THAT(share(c, 1), WithinAbs(0.75, 0.015));
  CHECK(share(c, 2) == 0);
  const Tensor weights = Tensor::from(std::vector<float>{2, 0, 6}, {3});
  const Var again = multinomial(tape.constant(weights), n, true);
  CHECK(again.dtype() == DType::i64);
  CHECK_THAT(share(again, 2), WithinAbs(0.75, 0.015));
  CHECK(share(again, 1) == 0);
  const Var once = multinomial(broadcast_to(tape.constant(weights), {n, 3}), 2);
  CHECK_THAT(share(select(once, 1, 0), 2), WithinAbs(0.75, 0.015));
  CHECK(sum(once).item<std::int64_t>() == 2 * n);  // both positive weights, in some order
  const Var p = bernoulli(tape.constant(Tensor::full({n}, 0.3)), DType::boolean);
  CHECK_THAT(mean(cast(p, DType::f64)).item(), WithinAbs(0.3, 0.015));
}

TEST_CASE("a permutation has every position once, and all orders") {
  Tape tape;
  std::vector<int> seen(6);
  for (int i = 0; i < 600; ++i) {
    const Tensor three = randperm(tape, 3).value();
    const auto at = three.data<std::int64_t>();
    CHECK(std::is_permutation(at.begin(), at.end(), std::vector<std::int64_t>{0, 1, 2}.begin()));
    ++seen[static_cast<std::size_t>(2 * at[0] + (at[1] > at[2] ? 1 : 0))];
  }
  for (const int count : seen) CHECK((count > 60 && count < 140));
  const Tensor many = randperm(tape, 1000, DType::i32).value();
  const auto data = many.data<std::int32_t>();
  std::vector<std::int32_t> sorted(data.begin(), data.end());
  CHECK_FALSE(std::ranges::is_sorted(sorted));
  std::ranges::sort(sorted);
  for (int i = 0; i < 1000; ++i) REQUIRE(sorted[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("normal numbers are differentiable by mean and deviation") {
  const auto f = [](std::span<const Var> xs) { return normal(xs[0], xs[1]); };
  const Tensor inputs[] = {Tensor::normal({2, 1}, 1, 0, 1, DType::f64),
                           Tensor::uniform({3}, 2, 0.5, 2, DType::f64)};
  const auto result = gradcheck(f, inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE(
    "a truncated normal number without deviation is its mean, with the limits of derivatives") {
  const auto drawn = [](double deviation) {
    Tape tape;
    tape.set_seed(5);
    const Var mean = tape.parameter(Tensor::from({-1.0, 0.0, 0.5}, {3}));
    const Var width = tape.parameter(Tensor::full({3}, deviation, DType::f64));
    const Var y = truncated_normal(mean, width, 0, 2);
    return std::array{y.value(), gradient(y, mean).value(), gradient(y, width).value()};
  };
  const auto [value, by_mean, by_deviation] = drawn(0);
  CHECK(value.at(0) == 0);
  CHECK(value.at(1) == 0);
  CHECK(value.at(2) == 0.5);
  CHECK(by_mean.at(0) == 0);
  CHECK(by_mean.at(1) == 1);
  CHECK(by_mean.at(2) == 1);
  CHECK(by_deviation.at(0) == 0);
  // At the mean 0 = low, the number is the deviation times one of half a normal distribution.
  CHECK_THAT(drawn(0x1p-20)[0].at(1), WithinAbs(by_deviation.at(1) * 0x1p-20, 1e-18));
  CHECK(by_deviation.at(1) > 0);
}

TEST_CASE("weights may be as small or as large as numbers of their dtype") {
  Tape tape;
  const std::vector<double> given = {2, 0, 1, 5};
  const Var weights = tape.constant(Tensor::from(given, {4}));
  const auto drawn = [&](double scale, bool replacement) {
    Tape other;
    const Var scaled = other.constant((weights * scale).value());
    return multinomial(scaled, 3, replacement).value();
  };
  for (const bool replacement : {false, true}) {
    const Tensor expected = drawn(1, replacement);
    CHECK(same_bits(drawn(0x1p-1070, replacement), expected));
    CHECK(same_bits(drawn(0x1p1020, replacement), expected));
  }
  // Weights that differ by more than the range are drawn by their order.
  const Var apart = tape.constant(Tensor::from<double>({1e-320, 0, 1e300}, {3}));
  CHECK(multinomial(apart, 2).value().at(0) == 2);
  CHECK(multinomial(apart, 2).value().at(1) == 0);
}

TEST_CASE("what distributions refuse") {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({3}));
  const Var whole = tape.constant(Tensor::arange(3));
  CHECK_THROWS_WITH(exponential(tape, {2}, 0), Contains("[exponential] the scale is 0"));
  CHECK_THROWS_AS(laplace(tape, {2}, 0, -1), ArgumentError);
  CHECK_THROWS_AS(gumbel(tape, {2}, 0, infinity), ArgumentError);
  CHECK_THROWS_AS(cauchy(tape, {2}, 0, 1, DType::i32), DTypeError);
  CHECK_THROWS_WITH(truncated_normal(tape, {2}, 0, 1, 2, 2), Contains("is not an interval"));
  CHECK_THROWS_WITH(truncated_normal(tape, {2}, 0, 0), Contains("give more than 0"));
  CHECK_THROWS_AS(normal(whole, whole), DTypeError);
  CHECK_THROWS_AS(gamma(whole), DTypeError);
  CHECK_THROWS_AS(beta(x, full(tape, {4}, 1)), ShapeError);
  CHECK_THROWS_WITH(gamma(x - 1.0).value(), Contains("[gamma] element 0 of shape (3) is 0") &&
                                                Contains("positive") &&
                                                Contains("distributions_test.cpp:"));
  CHECK_THROWS_WITH(poisson(-x).value(), Contains("[poisson] element 0") && Contains("0 or more"));
  CHECK_THROWS_WITH(randint(tape, 3, 3, {2}), Contains("[randint] [3, 3)"));
  CHECK_THROWS_WITH(multinomial(x, 4), Contains("cannot draw 4 of 3"));
  CHECK_THROWS_AS(multinomial(sum(x), 1, true), ShapeError);
  CHECK_THROWS_WITH(multinomial(x - 1.0, 1).value(),
                    Contains("row 0") && Contains("no positive weight"));
  CHECK_THROWS_WITH(multinomial(-x, 1).value(), Contains("negative or infinite"));
  const Var few = tape.constant(Tensor::from(std::vector<float>{1, 0, 0}, {3}));
  CHECK_THROWS_WITH(multinomial(few, 2).value(), Contains("too few positive weights"));
  CHECK_THROWS_AS(randperm(tape, -1), ArgumentError);
  CHECK_THROWS_WITH(randperm(tape, 3, DType::f32), Contains("[randperm]") && Contains("f32"));
  CHECK_THROWS_AS(permutation(x, 1), ShapeError);
  CHECK_THROWS_AS(categorical(x, 1), ShapeError);
}

}  // namespace
}  // namespace palimpsest::distributions_test
