#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"
#include "tests/catch.h"

namespace palimpsest::cumulative_test {
namespace {

using Numbers = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

Numbers elements(const Var& y) {
  const Tensor value = y.value();
  Numbers list;
  for (std::int64_t i = 0; i < value.elements(); ++i) list.push_back(value.at(i));
  return list;
}
bool same(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::abs(x - y) <= 1e-12 || x == y || (std::isnan(x) && std::isnan(y));
  });
}
Tensor f64(const Numbers& list) {
  return Tensor::from(list, {static_cast<std::int64_t>(list.size())});
}

TEST_CASE("cumulative products have exact derivatives at zeros", "[cumulative]") {
  Tape tape;
  const Var x = tape.parameter(f64({2, 0, 3, 0, 5}));
  CHECK(elements(cumprod(x, 0)) == Numbers{2, 0, 0, 0, 0});
  CHECK(elements(gradient(cumprod(x, 0), x)) == Numbers{1, 8, 0, 0, 0});
  CHECK(elements(cumprod(x, 0, true)) == Numbers{0, 0, 0, 0, 5});
  const Var truth = tape.constant(Tensor::ones({3}, DType::boolean));
  CHECK(cumprod(truth, 0).dtype() == DType::i64);
  const Var whole = tape.constant(Tensor::from<std::int32_t>({65536, 65536, -1}, {3}));
  CHECK(elements(cumprod(whole, 0)) == Numbers{65536, 0, 0});
}

TEST_CASE("cumulative extremes take the last of equal elements, and NaN", "[cumulative]") {
  Tape tape;
  const Var x = tape.parameter(f64({1, 3, 3, 2, nan, 9}));
  const auto [most, at] = cummax(x, 0);
  CHECK(same(elements(most), {1, 3, 3, 3, nan, nan}));
  CHECK(elements(at) == Numbers{0, 1, 2, 2, 4, 4});
  CHECK(elements(gradient(most, x)) == Numbers{1, 1, 2, 0, 2, 0});
  CHECK(elements(cummin(tape.constant(f64({2, 2, 5, 1})), 0, true).indices) == Numbers{3, 3, 3, 3});
  CHECK(elements(cummax(tape.constant(f64({-infinity, -infinity})), 0).indices) == Numbers{0, 1});
}

TEST_CASE("cumulative extremes of several lines", "[cumulative]") {
  Tape tape;
  const Var x = tape.constant(f64({1, nan, 3, 0,  //
                                   5, 5, 2, 7,    //
                                   nan, nan, 1, 1})
                                  .reshape({3, 4}));
  CHECK(same(elements(cummax(x, 1).values), {1, nan, nan, nan, 5, 5, 5, 7, nan, nan, nan, nan}));
  CHECK(elements(cummax(x, 1).indices) == Numbers{0, 1, 1, 1, 0, 1, 1, 3, 0, 1, 1, 1});
  CHECK(same(elements(cummin(x, 1, true).values), {nan, nan, 0, 0, 2, 2, 2, 7, nan, nan, 1, 1}));
  CHECK(elements(cummin(x, 1, true).indices) == Numbers{1, 1, 3, 3, 2, 2, 2, 3, 0, 1, 2, 3});
}

TEST_CASE("cumulative logarithms of sums stay finite, and so do their derivatives",
          "[cumulative]") {
  Tape tape;
  const Var x = tape.parameter(f64({-infinity, 1000, 1000, -infinity, -1000}));
  const Var y = logcumsumexp(x, 0);
  const double both = 1000 + std::log(2.0);
  CHECK(same(elements(y), {-infinity, 1000, both, both, both}));
  CHECK(same(elements(gradient(y, x)), {0, 2.5, 1.5, 0, 0}));
  CHECK(same(elements(gradient(gradient(y, x), x)), {0, 0, 0, 0, 0}));
  CHECK(same(elements(logcumsumexp(tape.constant(f64({1, infinity, 2, nan, 0})), 0)),
             {1, infinity, infinity, nan, nan}));
  const Var least = tape.parameter(f64({-infinity, -infinity}));
  CHECK(same(elements(gradient(logcumsumexp(least, 0), least)), {0, 0}));
  const Var odd = tape.parameter(f64({-infinity, 1, nan}));
  CHECK(same(elements(gradient(logcumsumexp(odd, 0), odd)), {nan, nan, nan}));
}

TEST_CASE("linear recurrences begin with their first term", "[cumulative]") {
  Tape tape;
  const Var a = tape.parameter(f64({infinity, 2, 0.5}));
  const Var b = tape.parameter(f64({1, 10, 100}));
  CHECK(elements(linear_recurrence(a, b, 0)) == Numbers{1, 12, 106});
  CHECK(elements(linear_recurrence(a, b, 0, true)) == Numbers{infinity, 210, 100});
  const std::vector<Var> slopes = gradient(linear_recurrence(a, b, 0), {a, b});
  CHECK(elements(slopes[0]) == Numbers{0, 1.5, 12});
  CHECK(elements(slopes[1]) == Numbers{4, 1.5, 1});
}

TEST_CASE("cumulative operations say what does not fit", "[cumulative]") {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2, 3}));
  const Var whole = tape.constant(Tensor::zeros({2, 3}, DType::i64));
  const Var truth = tape.constant(Tensor::zeros({2, 3}, DType::boolean));
  CHECK_THROWS_AS(cumprod(x, 2), ShapeError);
  CHECK_THROWS_AS(cummax(truth, 0), DTypeError);
  CHECK_THROWS_AS(cummin(x, -3), ShapeError);
  CHECK_THROWS_AS(logcumsumexp(whole, 0), DTypeError);
  CHECK_THROWS_AS(linear_recurrence(x, whole, 0), DTypeError);
  CHECK_THROWS_AS(linear_recurrence(x, tape.constant(Tensor::ones({4})), 0), ShapeError);
}

}  // namespace
}  // namespace palimpsest::cumulative_test
