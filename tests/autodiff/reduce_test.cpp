#include "autodiff/operations/reduce.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"

namespace palimpsest::reduce_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;
using Numbers = std::vector<double>;

/// The elements that contribute to each result, in row-major order, collected one by one.
std::vector<Numbers> grouped(const Tensor& x, const Axes& axes) {
  const Shape& shape = x.shape();
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank()), axes.empty());
  for (const int axis : axes) reduced[static_cast<std::size_t>(axis)] = true;
  std::int64_t results = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduced[static_cast<std::size_t>(axis)]) results *= shape[axis];
  }
  std::vector<Numbers> groups(static_cast<std::size_t>(results));
  for (std::int64_t element = 0; element < x.elements(); ++element) {
    std::int64_t rest = element, result = 0, weight = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t place = rest % shape[axis];
      rest /= shape[axis];
      if (reduced[static_cast<std::size_t>(axis)]) continue;
      result += place * weight;
      weight *= shape[axis];
    }
    groups[static_cast<std::size_t>(result)].push_back(x.at(element));
  }
  return groups;
}

double naive_sum(const Numbers& x) {
  double total = 0;
  for (const double element : x) total += element;
  return total;
}
double naive_variance(const Numbers& x) {
  const double mean = naive_sum(x) / static_cast<double>(x.size());
  double total = 0;
  for (const double element : x) total += (element - mean) * (element - mean);
  return total / static_cast<double>(x.size());
}
double naive_product(const Numbers& x) {
  double product = 1;
  for (const double element : x) product *= element;
  return product;
}
double naive_norm(const Numbers& x, double p) {
  double total = 0;
  for (const double element : x) total += std::pow(std::abs(element), p);
  return std::pow(total, 1 / p);
}
double naive_logsumexp(const Numbers& x) {
  double total = 0;
  for (const double element : x) total += std::exp(element);
  return std::log(total);
}

struct Case {
  std::string name;
  std::function<Var(const Var&, const Axes&)> call;
  std::function<double(const Numbers&)> naive;
  bool of_nothing = false;
};

std::vector<Case> cases() {
  const auto largest = [](const Numbers& x) { return std::max_element(x.begin(), x.end()); };
  const auto smallest = [](const Numbers& x) { return std::min_element(x.begin(), x.end()); };
  return {
      {"sum", [](auto& x, auto& axes) { return sum(x, axes); }, naive_sum, true},
      {"mean", [](auto& x, auto& axes) { return mean(x, axes); },
       [](const Numbers& x) { return naive_sum(x) / static_cast<double>(x.size()); }},
      {"prod", [](auto& x, auto& axes) { return prod(x, axes); }, naive_product, true},
      {"max", [](auto& x, auto& axes) { return max(x, axes); },
       [=](const Numbers& x) { return *largest(x); }},
      {"min", [](auto& x, auto& axes) { return min(x, axes); },
       [=](const Numbers& x) { return *smallest(x); }},
      {"argmax", [](auto& x, auto& axes) { return argmax(x, axes); },
       [=](const Numbers& x) { return static_cast<double>(largest(x) - x.begin()); }},
      {"argmin", [](auto& x, auto& axes) { return argmin(x, axes); },
       [=](const Numbers& x) { return static_cast<double>(smallest(x) - x.begin()); }},
      {"variance", [](auto& x, auto& axes) { return variance(x, axes, 0); }, naive_variance},
      {"standard_deviation", [](auto& x, auto& axes) { return standard_deviation(x, axes, 0); },
       [](const Numbers& x) { return std::sqrt(naive_variance(x)); }},
      {"norm", [](auto& x, auto& axes) { return norm(x, 2, axes); },
       [](const Numbers& x) { return naive_norm(x, 2); }, true},
      {"1-norm", [](auto& x, auto& axes) { return norm(x, 1, axes); },
       [](const Numbers& x) { return naive_norm(x, 1); }, true},
      {"3-norm", [](auto& x, auto& axes) { return norm(x, 3, axes); },
       [](const Numbers& x) { return naive_norm(x, 3); }, true},
      {"logsumexp", [](auto& x, auto& axes) { return logsumexp(x, axes); }, naive_logsumexp, true},
      {"all", [](auto& x, auto& axes) { return all(greater(x, x * 0.0), axes); },
       [=](const Numbers& x) { return x.empty() || *smallest(x) > 0 ? 1.0 : 0.0; }, true},
      {"any", [](auto& x, auto& axes) { return any(greater(x, x * 0.0), axes); },
       [=](const Numbers& x) { return !x.empty() && *largest(x) > 0 ? 1.0 : 0.0; }, true},
  };
}

TEST_CASE("reductions over every choice of axes agree with a loop over the elements") {
  const Shape shape =
      GENERATE(Shape{}, Shape{1}, Shape{7}, Shape{3, 4}, Shape{130, 2}, Shape{2, 131},
               Shape{2, 3, 4, 5}, Shape{3, 1, 2, 1, 4}, Shape{5, 0, 2}, Shape{9, 1030},
               Shape{2, 70, 3, 66}, Shape{2, 1, 3, 2, 2, 1, 3, 2}, Shape{300000}, Shape{50000, 3});
  const Tensor x = Tensor::uniform(shape, 5, -1.2, 1.5, DType::f64);
  for (unsigned bits = 0; bits < 1u << shape.rank(); ++bits) {
    Axes axes;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if ((bits >> axis & 1) != 0) axes.push_back(axis);
    }
    const std::vector<Numbers> groups = grouped(x, axes);
    for (const Case& c : cases()) {
      if (!c.of_nothing && !groups.empty() && groups[0].empty()) continue;
      if (!c.of_nothing && shape.elements() == 0 && axes.empty()) continue;
      if (!c.of_nothing && shape == Shape{5, 0, 2} && (bits & 2) != 0) continue;
      INFO(c.name << " of " << to_string(shape) << ", axes " << bits);
      Tape tape;
      const Tensor y = c.call(tape.constant(x), axes).value();
      REQUIRE(y.elements() == static_cast<std::int64_t>(groups.size()));
      double worst = 0;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        const double expected = c.naive(groups[i]);
        const double found = y.at(static_cast<std::int64_t>(i));
        if (found == expected) continue;
        worst = std::max(worst, std::abs(found - expected) / (1 + std::abs(expected)));
        if (std::isnan(found)) worst = found;
      }
      CHECK_THAT(worst, WithinAbs(0, 1e-12));
    }
  }
}

TEST_CASE("reductions of many short runs cost more than those of few long ones") {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({64, 32, 2}));
  const auto flops = [&](const Axes& axes) {
    return cost_of(NodeView(tape.nodes(), sum(x, axes).node())).flops;
  };
  constexpr double elements = 64 * 32 * 2;
  CHECK(flops({}) == elements + 200);
  CHECK(flops({0}) == elements + 200);  // in runs of whole rows
  CHECK(flops({1, 2}) == elements + 64 * 200);
  CHECK(flops({2}) == elements + 64 * 200);  // 32 rows of two at once
  CHECK(flops({0, 2}) == elements + 32 * 64 * 200);
}

TEST_CASE("sums of f32 lose nothing in length") {
  Tape tape;
  const std::int64_t n = 1 << 22;
  const Var x = tape.constant(Tensor::full({n / 4, 4}, 0.1));
  const double tenth = 0.1F;
  CHECK_THAT(sum(x).item() / (static_cast<double>(n) * tenth), WithinAbs(1, 3e-7));
  CHECK_THAT(mean(x).item(), WithinAbs(tenth, 3e-8));
  for (std::int64_t column = 0; column < 4; ++column) {
    CHECK_THAT(sum(x, {0}).value().at(column) / (static_cast<double>(n / 4) * tenth),
               WithinAbs(1, 3e-7));
  }
}

TEST_CASE("reductions of integers, of 16-bit numbers and of what is not finite") {
  Tape tape;
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();

  const Var whole = tape.constant(Tensor::from({7, 2, -3, 9}, {2, 2}));
  CHECK(sum(whole).dtype() == DType::i32);
  CHECK(sum(whole).item<int>() == 15);
  CHECK(prod(whole, {1}).value().at(1) == -27);
  CHECK(max(whole).item<int>() == 9);
  CHECK(min(whole, {0}).value().at(0) == -3);
  CHECK(cumsum(whole, 1, true).value().at(0) == 9);

  const Var half = tape.constant(Tensor::full({70000}, 1, DType::f16));
  CHECK(mean(half).item() == 1);
  CHECK(mean(half).dtype() == DType::f16);

  const Var odd = tape.constant(Tensor::from({1.0, nan, 3.0, nan}, {4}));
  CHECK(std::isnan(max(odd).item()));
  CHECK(argmax(odd).item<std::int64_t>() == 1);
  CHECK(argmin(odd).item<std::int64_t>() == 1);

  const auto logsumexp_of = [&](std::initializer_list<double> values) {
    return logsumexp(tape.constant(Tensor::from(values, {2}))).item();
  };
  CHECK_THAT(logsumexp_of({1000, 1000}), WithinAbs(1000 + std::log(2), 1e-12));
  CHECK(logsumexp_of({-infinity, -infinity}) == -infinity);
  CHECK_THAT(logsumexp_of({-infinity, 3}), WithinAbs(3, 1e-12));
  CHECK(logsumexp_of({infinity, 3}) == infinity);
}

TEST_CASE("derivatives of reductions where they are a matter of convention") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from({2.0, 5.0, 5.0, 1.0}, {4}));
  const auto derivative = [&](const Var& y, std::int64_t i) {
    return gradient(y, x).value().at(i);
  };
  CHECK(derivative(max(x), 1) == 1);
  CHECK(derivative(max(x), 2) == 0);
  const Var same = x * 0.0;
  for (const double p : {1.0, 2.0, 3.0}) CHECK(derivative(norm(same, p), 0) == 0);
  CHECK(derivative(standard_deviation(same), 0) == 0);
}

TEST_CASE("logsumexp of −∞ alone has derivatives of 0, and of NaN the derivative NaN") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::f64, DType::f32}) {
    Tape tape;
    const Tensor rows =
        Tensor::from({-infinity, -infinity, -infinity, 0.0, nan, -infinity}, {3, 2}).to(dtype);
    const Var x = tape.parameter(rows);
    const Var first = gradient(logsumexp(x, {1}), x);
    const Tensor slopes = first.value();
    const Tensor curvature = gradient(first * first, x).value();
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(slopes.at(i) == (i == 3 ? 1 : 0));
      CHECK(curvature.at(i) == 0);
    }
    for (std::int64_t i = 4; i < 6; ++i) CHECK(std::isnan(slopes.at(i)));
  }
}

TEST_CASE("sums and products of bool count in i64") {
  Tape tape;
  const Var truth = tape.constant(Tensor::from({1.0, 0.0, 1.0, 1.0}, {2, 2}).to(DType::boolean));
  CHECK(sum(truth).dtype() == DType::i64);
  CHECK(sum(truth).item() == 3);
  CHECK(same_bits(sum(truth, {1}).value(), Tensor::from<std::int64_t>({1, 2}, {2})));
  CHECK(same_bits(prod(truth, {0}).value(), Tensor::from<std::int64_t>({1, 0}, {2})));
  CHECK(same_bits(cumsum(truth, 1).value(), Tensor::from<std::int64_t>({1, 1, 1, 2}, {2, 2})));
}

TEST_CASE("reductions say what they cannot do") {
  Tape tape;
  const Var x = tape.constant(Tensor::zeros({2, 3}));
  const Var empty = tape.constant(Tensor::zeros({2, 0}));
  const Var whole = tape.constant(Tensor::zeros({2, 3}, DType::i64));
  const Var truth = tape.constant(Tensor::zeros({2, 3}, DType::boolean));
  CHECK_THROWS_WITH(sum(x, {2}), Contains("[sum] axis 2 is out of range for shape (2, 3)"));
  CHECK_THROWS_WITH(mean(x, {0, -2}), Contains("[mean] axis -2 is named twice"));
  CHECK_THROWS_WITH(max(empty, {1}), Contains("[max] shape (2, 0) has no elements to choose from"));
  CHECK_THROWS_WITH(mean(empty), Contains("[mean] shape (2, 0) has no elements"));
  CHECK_THROWS_AS(min(empty, {1}), ShapeError);
  CHECK_THROWS_WITH(variance(x, {1}, 3), Contains("correction 3") && Contains("3 elements"));
  CHECK_THROWS_AS(standard_deviation(empty), ArgumentError);
  CHECK_THROWS_WITH(mean(whole), Contains("[mean] takes floating dtypes, not i64 (2, 3)"));
  CHECK_THROWS_AS(logsumexp(whole), DTypeError);
  CHECK_THROWS_AS(max(truth), DTypeError);
  CHECK_THROWS_WITH(all(x), Contains("[all] takes bool, not f32 (2, 3)"));
  CHECK_THROWS_AS(cumsum(x, 2), ShapeError);
  CHECK_THROWS_WITH(norm(x, 0.5), Contains("[norm] p = 0.5") && Contains("p >= 1"));
  CHECK_THROWS_AS(norm(whole), DTypeError);
}

TEST_CASE("moments of large numbers do not feel how their mean is rounded") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({0x1p24f, 0x1p24f + 2}));
  CHECK(variance(x, {}, 0).item() == 1);
  CHECK(standard_deviation(x, {}, 0).item() == 1);
  CHECK(same_bits(gradient(variance(x, {}, 0), x).value(), Tensor::vector({-1, 1})));
  const Var rows = tape.parameter(Tensor::matrix({{0x1p24f, 1}, {0x1p24f + 2, 3}}));
  CHECK(same_bits(variance(rows, {0}, 0).value(), Tensor::vector({1, 1})));
  CHECK(std::isnan(variance(tape.constant(Tensor::vector({std::nanf(""), 1}))).item()));
}

TEST_CASE("norms hold where powers of the elements do not") {
  const double size = GENERATE(1e-25, 1e25);
  const double p = GENERATE(2.0, 3.0);
  Tape tape;
  const Var x =
      tape.parameter(Tensor::from<double>({3 * size, -4 * size, 3, -4}, {2, 2}).to(DType::f32));
  const Var y = norm(x, p, {1});
  const double unit = std::pow(std::pow(3, p) + std::pow(4, p), 1 / p);
  CHECK_THAT(y.value().at(0) / size, Catch::Matchers::WithinAbs(unit, 1e-5));
  CHECK(y.value().at(1) == norm(slice(x, 0, {.start = 1}), p).item());
  const double slope = gradient(y, x).value().at(1);
  CHECK_THAT(slope, Catch::Matchers::WithinAbs(-std::pow(4 / unit, p - 1), 1e-5));
  const Var odd = tape.parameter(Tensor::vector({0, 0, std::numeric_limits<float>::infinity(), 1}));
  CHECK(same_bits(norm(reshape(odd, {2, 2}), p, {1}).value(),
                  Tensor::vector({0, std::numeric_limits<float>::infinity()})));
  CHECK(norm(tape.constant(Tensor::zeros({0})), p).item() == 0);
}

}  // namespace
}  // namespace palimpsest::reduce_test
