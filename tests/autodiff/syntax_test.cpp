// What can be written with `Var`s besides calls of functions.
#include <sstream>

#include "autodiff/gradcheck.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::syntax_test {
namespace {

using Catch::Matchers::Contains;

/// 0, 1, … in the given shape.
Var counted(Tape& tape, const Shape& shape) {
  return tape.constant(Tensor::arange(shape.elements(), DType::f64).reshape(shape));
}

void check_same(const Var& x, const Var& y) { CHECK(same_bits(x.value(), y.value())); }

Tensor random(const Shape& shape, std::uint64_t seed) {
  return Tensor::normal(shape, seed, 0, 1, DType::f64);
}

TEST_CASE("a number selects a position of the first axis") {
  Tape tape;
  const Var x = counted(tape, {3, 4});
  check_same(x[1], select(x, 0, 1));
  check_same(x[-1], select(x, 0, 2));
  check_same(x[std::size_t{2}], select(x, 0, 2));
  check_same(x[1][2], select(select(x, 0, 1), 0, 2));
  CHECK(x[1].shape() == Shape{4});
}

TEST_CASE("several indices are for the first axes") {
  Tape tape;
  const Var x = counted(tape, {3, 4, 5});
  check_same(x[{1, 2}], select(select(x, 0, 1), 0, 2));
  check_same(x[{1, Slice{1, 3}}], slice(select(x, 0, 1), 0, {1, 3}));
  check_same(x[{Slice{}, 2}], select(x, 1, 2));
  check_same(x[{Slice{.step = -1}, Slice{1, 3}, 0}],
             select(slice(x, {{.step = -1}, {1, 3}}), 2, 0));
  check_same(x[{1}], x[1]);
  check_same(x[{}], x);
  check_same(x[Slice{.start = 1}], slice(x, 0, {.start = 1}));
}

TEST_CASE("an ellipsis takes the axes that are left, and a new axis takes none") {
  Tape tape;
  const Var x = counted(tape, {3, 4, 5});
  check_same(x[{ellipsis, 2}], select(x, 2, 2));
  check_same(x[{1, ellipsis, 2}], select(select(x, 0, 1), 1, 2));
  check_same(x[{1, ellipsis, 2, 3}], x[{1, 2, 3}]);
  check_same(x[ellipsis], x);
  check_same(x[new_axis], unsqueeze(x, 0));
  check_same(x[{Slice{}, new_axis, 1}], unsqueeze(select(x, 1, 1), 1));
  CHECK(x[{new_axis, ellipsis, new_axis}].shape() == Shape{1, 3, 4, 5, 1});
}

TEST_CASE("positions select as index_select does") {
  Tape tape;
  const Var x = counted(tape, {3, 4, 5});
  const Tensor positions = Tensor::from<std::int64_t>({2, 0, 2, 1}, {2, 2});
  const Var recorded = tape.constant(positions);
  check_same(x[recorded], index_select(x, 0, recorded));
  check_same(x[positions], index_select(x, 0, recorded));
  check_same(x[{Slice{}, recorded, 1}], select(index_select(x, 1, recorded), 3, 1));
  check_same(x[{0, positions}], index_select(select(x, 0, 0), 0, recorded));
}

TEST_CASE("a mask selects the elements where it is true") {
  Tape tape;
  const Var x = counted(tape, {3, 4, 2});
  const Var mask = tape.constant(Tensor::from<bool>({true, false, true}, {3}));
  check_same(x[mask], index_select(x, 0, tape.constant(Tensor::from<std::int64_t>({0, 2}, {2}))));
  check_same(x[mask.value()], x[mask]);
  check_same(x[x > 20], masked_select(x, x > 20));
  const Var matrix = select(x, 2, 0) > 10;
  check_same(x[{matrix, 1}], masked_select(select(x, 2, 1), matrix));
  const Var pairs = tape.constant(Tensor::from<bool>({false, true}, {2}));
  check_same(x[{0, ellipsis, pairs}], slice(select(x, 0, 0), 1, {.start = 1}));
  CHECK(x[x > 1000].shape() == Shape{0});
  check_error([&] { x[tape.constant(Tensor::from<bool>({true}, {1}))]; },
              {"[index]", "a condition of shape (1)", "(3, 4, 2)", "syntax_test.cpp"});
}

TEST_CASE("indices that do not fit are errors with their line") {
  Tape tape;
  const Var x = counted(tape, {3, 4});
  const Var positions = tape.constant(Tensor::arange(2));
  check_error([&] { x[3]; }, {"[select]", "syntax_test.cpp"});
  check_error([&] { x[{0, 1, Slice{}}]; },
              {"[index]", "3 indices for shape (3, 4); give at most 2", "syntax_test.cpp"});
  check_error([&] { x[{ellipsis, ellipsis}]; }, {"[index]", "more than one ellipsis"});
  check_error([&] { x[{positions, positions}]; },
              {"[index]", "more than one index is a tensor", "index_select", "syntax_test.cpp"});
  check_error([&] { x[tape.constant(Tensor::ones({2}))]; }, {"[index_select]", "f32 (2)"});
  check_error([&] { Var()[0]; }, {"[index]", "a Var without a value"});
  const int line = __LINE__ + 1;
  const std::string error = error_of([&] { x[-4]; });
  CHECK_THAT(error, Contains("syntax_test.cpp:" + std::to_string(line)));
}

TEST_CASE("x += y records x + y and refers to it") {
  Tape tape;
  Var x = tape.parameter(random({2, 3}, 1));
  const Var before = x;
  const Var y = tape.parameter(random({3}, 2));
  x += y;
  check_same(x, before + y);
  CHECK(!(x == before));
  x = before;
  x -= y;
  check_same(x, before - y);
  x = before;
  x *= y;
  check_same(x, before * y);
  x = before;
  x /= y;
  check_same(x, before / y);
  x = before;
  ((x += 2) *= 3.5) -= 1;
  x /= 4;
  check_same(x, ((before + 2) * 3.5 - 1) / 4);
  check_error([&] { x += tape.constant(Tensor::ones({4})); }, {"[add]", "(2, 3) and (4)"});
}

TEST_CASE("numbers may stand on the left") {
  Tape tape;
  const Var x = tape.constant(Tensor::from<double>({1, 2, 3}, {3}));
  check_same(maximum(2.0, x), maximum(x, 2.0));
  check_same(minimum(2.0, x), minimum(x, 2.0));
  check_same(2.0 < x, x > 2.0);
  check_same(2.0 <= x, x >= 2.0);
  check_same(2.0 > x, x < 2.0);
  check_same(2.0 >= x, x <= 2.0);
  check_same(greater(2.0, x), less(x, 2.0));
  check_same(greater_equal(2.0, x), less_equal(x, 2.0));
  check_same(less(2.0, x), greater(x, 2.0));
  check_same(less_equal(2.0, x), greater_equal(x, 2.0));
  check_same(equal(2.0, x), equal(x, 2.0));
  check_same(not_equal(2.0, x), not_equal(x, 2.0));
}

TEST_CASE("a choice between two numbers is f32") {
  Tape tape;
  const Var x = tape.constant(Tensor::from<std::int64_t>({-1, 0, 1}, {3}));
  CHECK(same_bits(where(x > 0, 1.0, 0.5).value(), Tensor::vector({0.5F, 0.5F, 1})));
  CHECK(where(x > 0, 1, 0).dtype() == DType::f32);
  check_error([&] { where(x, 1.0, 0.0); }, {"[where]", "takes bool, not i64 (3)"});
}

TEST_CASE("logical operators are the logical functions") {
  Tape tape;
  const Var a = tape.constant(Tensor::from<bool>({false, false, true, true}, {4}));
  const Var b = tape.constant(Tensor::from<bool>({false, true, false, true}, {4}));
  check_same(!a, logical_not(a));
  check_same(a && b, logical_and(a, b));
  check_same(a || b, logical_or(a, b));
  const Var number = tape.constant(Tensor::ones({4}));
  check_error([&] { static_cast<void>(!number); }, {"[logical_not]", "x > 0", "syntax_test.cpp"});
  check_error([&] { static_cast<void>(a && number); }, {"[logical_and]", "f32 (4)"});
  check_error([&] { static_cast<void>(number || a); }, {"[logical_or]", "f32 (4)"});
}

TEST_CASE("printing a value computes it") {
  Tape tape;
  const Var x = tape.constant(Tensor::vector({1, 2}));
  std::ostringstream text;
  text << x + 1 << " and " << Var();
  CHECK(text.str() == "f32 (2)\n[2, 3] and undefined Var");
}

TEST_CASE("derivatives of the forms with brackets and of assignments") {
  const Tensor inputs[] = {random({3, 4, 5}, 3), random({4, 5}, 4)};
  const auto f = [](std::span<const Var> v) {
    const Var x = v[0];
    Var y = x[{Slice{.step = -1}, ellipsis, new_axis, -1}] * 2;
    y += x[1][0][0];
    Var z = v[1];
    z *= x[{0, Slice{1, std::nullopt}, Slice{0, 5}}][0];
    z -= v[1][Tensor::from<std::int32_t>({1, 1, 0, 3}, {4})];
    z /= 3;
    const Var positive = maximum(0.1, z) + minimum(2, z);
    return sum(y * y) + sum(where(z > 0 && !(z > 1), positive, z * z));
  };
  const GradcheckResult result = gradcheck(f, inputs);
  INFO(result.message);
  CHECK(result.passed);
}

}  // namespace
}  // namespace palimpsest::syntax_test
