#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/binary_functions.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"

/// Reductions of short rows fold many of them at once, and short rows are copied by loops of their
/// own. Neither may show in the results.
namespace palimpsest::short_rows_test {
namespace {

using Reduction = std::function<Var(const Var& x, const Axes& axes)>;

const std::vector<std::pair<const char*, Reduction>>& reductions() {
  static const std::vector<std::pair<const char*, Reduction>> all{
      {"sum", [](const Var& x, const Axes& axes) { return sum(x, axes); }},
      {"mean", [](const Var& x, const Axes& axes) { return mean(x, axes); }},
      {"prod", [](const Var& x, const Axes& axes) { return prod(x, axes); }},
      {"max", [](const Var& x, const Axes& axes) { return max(x, axes); }},
      {"min", [](const Var& x, const Axes& axes) { return min(x, axes); }},
      {"variance", [](const Var& x, const Axes& axes) { return variance(x, axes, 0); }},
      {"norm", [](const Var& x, const Axes& axes) { return norm(x, 3, axes); }},
      {"logsumexp", [](const Var& x, const Axes& axes) { return logsumexp(x, axes); }}};
  return all;
}

/// The same bits, except that any NaN equals any other.
bool same_or_nan(const Tensor& a, const Tensor& b) {
  for (std::int64_t i = 0; i < a.shape().elements(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (!same_number(x, y) && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return a.shape() == b.shape();
}

}  // namespace

TEST_CASE("a reduction of many short rows has the bits of the reduction of each") {
  const auto [name, reduce] = GENERATE(from_range(reductions()));
  const DType dtype = GENERATE(DType::f32, DType::f64);
  CAPTURE(name, name_of(dtype));
  std::mt19937 random(7);
  for (int trial = 0; trial < 30; ++trial) {
    const auto below = [&](int n) { return static_cast<std::int64_t>(random() % unsigned(n)); };
    const std::int64_t groups = 2 + below(70);
    const std::int64_t rows = 1 + below(trial % 2 == 0 ? 12 : 70);
    const std::int64_t columns = trial % 3 == 0 ? 1 + below(9) : 1;
    CAPTURE(groups, rows, columns);
    Tape tape;
    const Var normal = tape.constant(
        Tensor::normal({groups, rows, columns}, static_cast<std::uint64_t>(trial), 0, 1, dtype));
    Var x = trial % 5 == 4 ? normal * 0.0 : normal;  // zeros of both signs
    if (trial % 5 == 3) x = where(x > 1.5, std::numeric_limits<double>::quiet_NaN(), x);
    const Tensor whole = reduce(x, {1}).value();
    const Tensor largest = argmax(x, {1}).value(), smallest = argmin(x, {1}).value();
    for (std::int64_t group = 0; group < groups; ++group) {
      const Tensor one = reduce(slice(x, 0, {.start = group, .stop = group + 1}), {1}).value();
      const auto row_of = [&](const Tensor& all) {
        return slice(tape.constant(all), 0, {.start = group, .stop = group + 1}).value();
      };
      REQUIRE(same_or_nan(row_of(whole), one));
      const Var alone = slice(x, 0, {.start = group, .stop = group + 1});
      REQUIRE(same_bits(row_of(largest), argmax(alone, {1}).value()));
      REQUIRE(same_bits(row_of(smallest), argmin(alone, {1}).value()));
    }
  }
}

TEST_CASE("positions of extremes are the first ones, also of NaN and across blocks") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::i32);
  for (const std::int64_t n : {1, 2, 15, 16, 63, 64, 65, 200, 1000, 32768, 100000}) {
    for (const std::int64_t place : {std::int64_t{0}, n / 2, n - 1}) {
      CAPTURE(n, place);
      Tape tape;
      std::vector<double> numbers(static_cast<std::size_t>(n), 1);
      numbers[static_cast<std::size_t>(place)] = 3;
      numbers.back() = 3;
      const auto given = [&] { return tape.constant(Tensor::from(numbers, {n}).to(dtype)); };
      CHECK(argmax(given()).item() == static_cast<double>(place));
      if (dtype == DType::i32) continue;
      numbers[static_cast<std::size_t>(place)] = std::numeric_limits<double>::quiet_NaN();
      CHECK(argmax(given()).item() == static_cast<double>(place));
      CHECK(argmin(given()).item() == static_cast<double>(place));
      for (const double extreme : {max(given()).item(), min(given()).item()}) {
        CHECK(std::isnan(extreme));
        CHECK_FALSE(std::signbit(extreme));
      }
    }
  }
}

TEST_CASE("positions of extremes are found in each of several long rows") {
  constexpr std::int64_t rows = 3;
  constexpr std::int64_t n = 40'000;
  for (const std::int64_t place : {std::int64_t{1}, n / 3, n - 1}) {
    CAPTURE(place);
    std::vector<double> numbers(static_cast<std::size_t>(rows * n), 1);
    for (std::int64_t row = 0; row < rows; ++row) {
      numbers[static_cast<std::size_t>(row * n + (place + row * 15'000) % n)] = 5;
    }
    Tape tape;
    const Tensor found = argmax(tape.constant(Tensor::from(numbers, {rows, n})), {1}).value();
    for (std::int64_t row = 0; row < rows; ++row) {
      CHECK(found.data<std::int64_t>()[static_cast<std::size_t>(row)] ==
            (place + row * 15'000) % n);
    }
  }
}

TEST_CASE("functions of two numbers have the bits of those of repeated elements") {
  const DType dtype = GENERATE(DType::i64, DType::bf16, DType::f32, DType::f64);
  std::mt19937 random(5);
  for (int trial = 0; trial < 60; ++trial) {
    const auto below = [&](int n) { return static_cast<std::int64_t>(random() % unsigned(n)); };
    Shape result, left, right;
    for (int axis = 0; axis < 4; ++axis) {
      const std::int64_t size = 1 + below(axis == 3 ? 70 : 9);
      const std::int64_t repeated = below(3);
      result.push_back(size);
      left.push_back(repeated == 0 ? 1 : size);
      right.push_back(repeated == 1 ? 1 : size);
    }
    CAPTURE(name_of(dtype), to_string(left), to_string(right));
    Tape tape;
    const auto operand = [&](const Shape& shape, std::uint64_t seed) {
      return tape.constant(Tensor::normal(shape, seed, 2, 3, DType::f64).to(dtype));
    };
    const Var a = operand(left, 1), b = operand(right, 2);
    const Var whole_a = broadcast_to(a, result), whole_b = broadcast_to(b, result);
    CHECK(same_bits((a - b).value(), (whole_a - whole_b).value()));
    CHECK(same_bits((a > b).value(), (whole_a > whole_b).value()));
    CHECK(same_bits(remainder(a, b).value(), remainder(whole_a, whole_b).value()));
  }
}

TEST_CASE("short rows and repeated elements are copied where they belong") {
  const DType dtype = GENERATE(DType::boolean, DType::i16, DType::f32, DType::f64);
  std::mt19937 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    const auto below = [&](int n) { return static_cast<std::int64_t>(random() % unsigned(n)); };
    // Each axis of the result repeats that of the operand, or an axis of size 1.
    Shape from, to;
    for (int axis = 0; axis < 4; ++axis) {
      const std::int64_t size = 1 + below(axis == 3 ? 40 : 7);
      to.push_back(size);
      from.push_back(below(2) == 0 ? 1 : size);
    }
    std::vector<double> numbers(static_cast<std::size_t>(from.elements()));
    for (double& number : numbers) number = static_cast<double>(below(2 + trial));
    const Tensor x = Tensor::from(numbers, from).to(dtype);
    CAPTURE(to_string(from), to_string(to));
    Tape tape;
    const Tensor y = broadcast_to(tape.constant(x), to).value();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      std::int64_t rest = i, source = 0, weight = 1;
      for (int axis = 3; axis >= 0; --axis) {
        if (from[axis] != 1) source += rest % to[axis] * weight;
        weight *= from[axis];
        rest /= to[axis];
      }
      if (y.at(i) != x.at(source)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace palimpsest::short_rows_test
