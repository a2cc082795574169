#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::composed_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> elements(const Var& y) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < y.value().elements(); ++i) list.push_back(y.value().at(i));
  return list;
}

using Numbers = std::vector<double>;

TEST_CASE("conditions on NaN, infinities and signs", "[elementwise]") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::f16, DType::bf16);
  Tape tape;
  const Var x =
      tape.constant(Tensor::from<double>({nan, infinity, -infinity, -0.0, 2}, {5}).to(dtype));
  CHECK(elements(isnan(x)) == Numbers{1, 0, 0, 0, 0});
  CHECK(elements(isinf(x)) == Numbers{0, 1, 1, 0, 0});
  CHECK(elements(isposinf(x)) == Numbers{0, 1, 0, 0, 0});
  CHECK(elements(isneginf(x)) == Numbers{0, 0, 1, 0, 0});
  CHECK(elements(isfinite(x)) == Numbers{0, 0, 0, 1, 1});
  CHECK(elements(signbit(slice(x, 0, {.start = 1}))) == Numbers{0, 1, 1, 0});
  CHECK(isnan(x).dtype() == DType::boolean);
}

TEST_CASE("conditions on integers", "[elementwise]") {
  Tape tape;
  const Var x = tape.constant(Tensor::from<std::int32_t>({-1, 0, 1}, {3}));
  CHECK(elements(isnan(x)) == Numbers{0, 0, 0});
  CHECK(elements(isinf(x)) == Numbers{0, 0, 0});
  CHECK(elements(isposinf(x)) == Numbers{0, 0, 0});
  CHECK(elements(isneginf(x)) == Numbers{0, 0, 0});
  CHECK(elements(isfinite(x)) == Numbers{1, 1, 1});
  CHECK(elements(signbit(x)) == Numbers{1, 0, 0});
}

TEST_CASE("numbers that are close", "[elementwise]") {
  Tape tape;
  const auto constant = [&](Numbers numbers) {
    return tape.constant(Tensor::from(numbers, {static_cast<std::int64_t>(numbers.size())}));
  };
  const Var a = constant({1, 1, infinity, infinity, nan, 1});
  const Var b = constant({1 + 1e-6, 1.1, infinity, -infinity, nan, infinity});
  CHECK(elements(isclose(a, b)) == Numbers{1, 0, 1, 0, 0, 0});
  CHECK(elements(isclose(a, b, {.relative = 0.2, .equal_nan = true})) == Numbers{1, 1, 1, 0, 1, 0});
}

TEST_CASE("NaN and infinities are replaced by numbers of the dtype", "[elementwise]") {
  const auto [dtype, largest] = GENERATE(table<DType, double>({
      {DType::f64, std::numeric_limits<double>::max()},
      {DType::f32, std::numeric_limits<float>::max()},
      {DType::f16, 65504},
      {DType::bf16, 0x1.fep127},
  }));
  Tape tape;
  const Var x = tape.parameter(Tensor::from<double>({nan, infinity, -infinity, 2}, {4}).to(dtype));
  CHECK(elements(nan_to_num(x)) == Numbers{0, largest, -largest, 2});
  const Var y = nan_to_num(x, {.nan = 1, .posinf = 2, .neginf = 3});
  CHECK(elements(y) == Numbers{1, 2, 3, 2});
  CHECK(elements(gradient(y, x)) == Numbers{0, 0, 0, 1});
}

TEST_CASE("NaN is not larger than a number", "[elementwise]") {
  Tape tape;
  const Var a = tape.parameter(Tensor::from<double>({nan, 1, 2, nan}, {4}));
  const Var b = tape.parameter(Tensor::from<double>({3, nan, 2, nan}, {4}));
  const Numbers most = elements(fmax(a, b));
  const Numbers least = elements(fmin(a, b));
  CHECK(Numbers(most.begin(), most.end() - 1) == Numbers{3, 1, 2});
  CHECK(Numbers(least.begin(), least.end() - 1) == Numbers{3, 1, 2});
  CHECK((std::isnan(most[3]) && std::isnan(least[3])));
  CHECK(elements(gradient(fmax(a, b), a)) == Numbers{0, 1, 0.5, 1});
}

TEST_CASE("activations at their kinks", "[elementwise]") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from<double>({-3, -0.5, 0, 0.5, 3, 6}, {6}));
  const auto slope = [&](const Var& y) { return elements(gradient(y, x)); };
  CHECK(elements(relu6(x)) == Numbers{0, 0, 0, 0.5, 3, 6});
  CHECK(slope(relu6(x)) == Numbers{0, 0, 0, 1, 1, 0});
  CHECK(elements(hardsigmoid(x)) == Numbers{0, 2.5 / 6, 0.5, 3.5 / 6, 1, 1});
  CHECK(slope(hardswish(x))[0] == 0);
  CHECK(slope(hardswish(x))[4] == 1);
  CHECK(elements(softshrink(x)) == Numbers{-2.5, 0, 0, 0, 2.5, 5.5});
  CHECK(slope(softshrink(x)) == Numbers{1, 0, 0, 0, 1, 1});
  CHECK(elements(hardshrink(x)) == Numbers{-3, 0, 0, 0, 3, 6});
  CHECK(elements(threshold(x, 0.5, 9)) == Numbers{9, 9, 9, 9, 3, 6});
  CHECK(elements(celu(x, 2))[4] == 3);
  CHECK(elements(logsigmoid(x * 1000.0))[0] == -3000);
  const Var far = tape.parameter(Tensor::from<double>({nan, infinity, -infinity}, {3}));
  CHECK(std::isnan(elements(hardshrink(far))[0]));
  CHECK(std::isnan(elements(threshold(far, 0, 1))[0]));
  CHECK(elements(softshrink(far))[2] == -infinity);
}

TEST_CASE("interpolation ends exactly at its operands", "[elementwise]") {
  Tape tape;
  const Var a = tape.parameter(Tensor::from<double>({0.1, 1e16}, {2}));
  const Var b = tape.parameter(Tensor::from<double>({0.7, 1}, {2}));
  const Var ends = tape.parameter(Tensor::from<double>({1, 1}, {2}));
  CHECK(elements(lerp(a, b, 1)) == elements(b));
  CHECK(elements(lerp(a, b, ends)) == elements(b));
  CHECK(elements(lerp(a, b, 0)) == elements(a));
}

TEST_CASE("composed functions refuse arguments that they cannot take", "[elementwise]") {
  Tape tape;
  const Var x = tape.parameter(Tensor::zeros({2, 3}));
  const Var whole = tape.constant(Tensor::arange(3));
  check_error([&] { softshrink(x, -1); }, {"softshrink", "bound", "0 or more"});
  check_error([&] { hardshrink(x, -1); }, {"hardshrink", "bound", "0 or more"});
  check_error([&] { celu(x, 0); }, {"celu", "positive"});
  check_error([&] { mvlgamma(x, 0); }, {"mvlgamma", "1 or more"});
  check_error([&] { glu(x); }, {"glu", "(2, 3)", "even"});
  check_error([&] { prelu(x, tape.parameter(Tensor::zeros({2}))); }, {"prelu", "(2)", "(2, 3)"});
  check_error([&] { logical_xor(x, x); }, {"logical_xor", "takes bool"});
  check_error([&] { nan_to_num(whole); }, {"nan_to_num"});
  check_error([&] { isclose(whole, whole); }, {"isclose"});
}

}  // namespace
}  // namespace palimpsest::composed_test
