#include <cmath>
#include <limits>
#include <utility>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::scatter_test {
namespace {

using Catch::Matchers::Contains;
using Numbers = std::vector<double>;
using Whole = std::vector<std::int64_t>;

Numbers elements(const Var& y) {
  const Tensor value = y.value();
  Numbers list;
  for (std::int64_t i = 0; i < value.elements(); ++i) list.push_back(value.at(i));
  return list;
}

struct Given {
  Tape tape;
  Var x = tape.parameter(Tensor::arange(6, DType::f64).reshape({2, 3}), "x");  // 0 1 2 / 3 4 5

  Var places(const Whole& list, const Shape& shape, DType dtype = DType::i64) {
    return tape.constant(Tensor::from(list, shape).to(dtype));
  }
  Var numbers(const Numbers& list, const Shape& shape) {
    return tape.parameter(Tensor::from(list, shape));
  }
};

TEST_CASE("the last of several elements is written, and only it has a derivative", "[scatter]") {
  Given g;
  const DType dtype = GENERATE(DType::i64, DType::i32);
  const Var index = g.places({1, 1, 0, 2, 2, 2}, {2, 3}, dtype);
  const Var source = g.numbers({10, 20, 30, 40, 50, 60}, {2, 3});
  const Var y = scatter(g.x, 1, index, source);
  CHECK(elements(y) == Numbers{30, 20, 2, 3, 4, 60});
  CHECK(elements(gradient(y, source)) == Numbers{0, 1, 1, 0, 0, 1});
  CHECK(elements(gradient(y, g.x)) == Numbers{0, 0, 1, 1, 1, 0});
  CHECK(elements(scatter(g.x, 0, g.places({1, 0, 1}, {1, 3}), 7.0)) == Numbers{0, 7, 2, 7, 4, 7});
  const Var rows = g.numbers({1, 2, 3, 4, 5, 6}, {2, 3});
  const Var copied = index_copy(g.x, 0, g.places({1, 1}, {2}, dtype), rows);
  CHECK(elements(copied) == Numbers{0, 1, 2, 4, 5, 6});
  CHECK(elements(gradient(copied, rows)) == Numbers{0, 0, 0, 1, 1, 1});
  const Var truth = g.tape.constant(Tensor::zeros({3}, DType::boolean));
  CHECK(elements(scatter(truth, 0, g.places({2}, {1}), 1.0)) == Numbers{0, 0, 1});
}

TEST_CASE("indices of several axes, conditions, and axes that are taken whole", "[scatter]") {
  Given g;
  CHECK(elements(index(g.x, {g.places({1, 0}, {2}), g.places({2}, {1})})) == Numbers{5, 2});
  CHECK(elements(index(g.x, {Var(), g.places({2, 0}, {2})})) == Numbers{2, 0, 5, 3});
  CHECK(elements(index(g.x, {g.x > 2.5})) == Numbers{3, 4, 5});
  const Var row = index_select(g.x, 0, g.places({1}, {})) > 3.5;  // false true true
  CHECK(elements(index(g.x, {Var(), row})) == Numbers{1, 2, 4, 5});
  CHECK(elements(masked_select(g.x, row)) == Numbers{1, 2, 4, 5});
  CHECK(elements(gradient(masked_select(g.x, g.x > 3.5), g.x)) == Numbers{0, 0, 0, 0, 1, 1});
  const Var cube = reshape(g.tape.constant(Tensor::arange(24)), {2, 3, 4});
  const Var apart = index(cube, {g.places({1, 0}, {2}), Var(), g.places({3, 1}, {2})});
  CHECK(apart.shape() == Shape{2, 3});
  CHECK(elements(apart) == Numbers{15, 19, 23, 1, 5, 9});
  CHECK(index(cube, {Var(), g.places({2, 0}, {2}), g.places({3, 1}, {1, 2})}).shape() ==
        Shape{2, 1, 2});
}

TEST_CASE("values are put at indices", "[scatter]") {
  Given g;
  const Var minus = g.numbers({-1}, {1});
  CHECK(elements(index_put(g.x, {g.x > 3.5}, minus)) == Numbers{0, 1, 2, 3, -1, -1});
  const Var twice = g.places({0, 0, 1}, {3});
  const Var column = g.places({2}, {1});
  const Var values = g.numbers({10, 20, 30}, {3});
  CHECK(elements(index_put(g.x, {twice, column}, values)) == Numbers{0, 1, 20, 3, 4, 30});
  CHECK(elements(index_put(g.x, {twice, column}, values, true)) == Numbers{0, 1, 32, 3, 4, 35});
  CHECK(elements(index_put(g.x, {Var(), g.places({1}, {1})}, minus)) ==
        Numbers{0, -1, 2, 3, -1, 5});
}

TEST_CASE("nonzero finds positions of any shape and dtype", "[scatter]") {
  Given g;
  CHECK(elements(nonzero(g.x)) == Numbers{0, 1, 0, 2, 1, 0, 1, 1, 1, 2});
  CHECK(nonzero(g.tape.constant(Tensor::scalar(3))).shape() == Shape{1, 0});
  CHECK(nonzero(g.tape.constant(Tensor::zeros({0, 4}, DType::boolean))).shape() == Shape{0, 2});
  CHECK_THROWS_WITH(nonzero(g.x, 4).value(), Contains("[nonzero] 5 elements of bool (2, 3)") &&
                                                 Contains("4 were recorded") &&
                                                 Contains("scatter_test.cpp"));
}

TEST_CASE("elements are reduced at positions", "[scatter]") {
  Given g;
  const Var index = g.places({1, 1, 0, 2, 2, 2}, {2, 3});
  const Var source = g.numbers({10, 2, 0, 4, 4, 6}, {2, 3});
  const auto reduce = [&](ScatterReduction reduction, bool include_self = true) {
    return scatter_reduce(g.x, 1, index, source, reduction, include_self);
  };
  CHECK(elements(reduce(ScatterReduction::sum)) == Numbers{0, 13, 2, 3, 4, 19});
  CHECK(elements(reduce(ScatterReduction::sum, false)) == Numbers{0, 12, 2, 3, 4, 14});
  CHECK(elements(reduce(ScatterReduction::mean)) == Numbers{0, 13.0 / 3, 2, 3, 4, 19.0 / 4});
  CHECK(elements(reduce(ScatterReduction::mean, false)) == Numbers{0, 6, 2, 3, 4, 14.0 / 3});
  CHECK(elements(reduce(ScatterReduction::prod)) == Numbers{0, 20, 2, 3, 4, 480});
  CHECK(elements(reduce(ScatterReduction::prod, false)) == Numbers{0, 20, 2, 3, 4, 96});
  CHECK(elements(reduce(ScatterReduction::amax)) == Numbers{0, 10, 2, 3, 4, 6});
  CHECK(elements(reduce(ScatterReduction::amin)) == Numbers{0, 1, 2, 3, 4, 4});
  CHECK(elements(reduce(ScatterReduction::amin, false)) == Numbers{0, 2, 2, 3, 4, 4});
  // Products of the others, also at zeros; equal shares of equal extremes.
  const Var products = reduce(ScatterReduction::prod);
  CHECK(elements(gradient(products, source)) == Numbers{2, 10, 0, 120, 120, 80});
  CHECK(elements(gradient(products, g.x)) == Numbers{0, 20, 1, 1, 1, 96});
  const Var least = reduce(ScatterReduction::amin, false);
  CHECK(elements(gradient(least, source)) == Numbers{0, 1, 1, 0.5, 0.5, 0});
  CHECK(elements(gradient(least, g.x)) == Numbers{0, 0, 1, 1, 1, 0});
  const Var zero = reduce(ScatterReduction::amax);
  CHECK(elements(gradient(zero, source)) == Numbers{1, 0, 0.5, 0, 0, 1});
  CHECK(elements(gradient(zero, g.x)) == Numbers{0.5, 0, 1, 1, 1, 0});
}

TEST_CASE("reductions at positions take every dtype of numbers, and NaN", "[scatter]") {
  Given g;
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::i64, DType::i32, DType::i8);
  const Var x = g.tape.constant(Tensor::from(Numbers{1, 2, 3}, {3}).to(dtype));
  const Var source = g.tape.constant(Tensor::from(Numbers{4, 5}, {2}).to(dtype));
  const Var index = g.places({2, 2}, {2}, is_integer(dtype) ? dtype : DType::i32);
  using enum ScatterReduction;
  for (const auto& [reduction, last] : {std::pair{sum, 12}, {prod, 60}, {amax, 5}, {amin, 3}}) {
    const Var y = scatter_reduce(x, 0, index, source, reduction);
    CHECK(y.dtype() == dtype);
    CHECK(elements(y) == Numbers{1, 2, static_cast<double>(last)});
  }
  if (is_integer(dtype)) {
    CHECK_THROWS_AS(scatter_reduce(x, 0, index, source, mean), DTypeError);
  } else {
    CHECK(elements(scatter_reduce(x, 0, index, source, mean)) == Numbers{1, 2, 4});
    const Var nan = sqrt(x - 2.0);  // NaN 0 1
    CHECK(std::isnan(elements(scatter_reduce(nan, 0, index * 0, source, amax))[0]));
    CHECK(elements(scatter_reduce(nan, 0, index * 0, source, amax, false))[0] == 5);
    const Var positive = source + std::numeric_limits<double>::quiet_NaN();
    const double of_nan = elements(scatter_reduce(x, 0, index * 0, positive, amax, false))[0];
    CHECK((std::isnan(of_nan) && !std::signbit(of_nan)));
  }
}

TEST_CASE("reductions at positions say what does not fit", "[scatter]") {
  Given g;
  const Var three = g.numbers({1, 2, 3}, {1, 3});
  const auto reduce = [&](const Var& index, const Var& source) {
    return scatter_reduce(g.x, 0, index, source, ScatterReduction::prod);
  };
  CHECK_THROWS_WITH(reduce(g.places({0}, {1}), three),
                    Contains("[scatter_reduce] the index has shape (1)"));
  CHECK_THROWS_WITH(reduce(g.places({0, 1, 0}, {1, 3}), g.x), Contains("the source has shape"));
  CHECK_THROWS_WITH(
      reduce(g.places({0, 1, 2}, {1, 3}), three).value(),
      Contains("[scatter_reduce] index 2 at element 2") && Contains("scatter_test.cpp"));
  const Var truth = g.x > 0;
  CHECK_THROWS_WITH(scatter_reduce(truth, 0, g.places({0, 0, 0}, {1, 3}), slice(truth, {{0, 1}}),
                                   ScatterReduction::sum),
                    Contains("[scatter_reduce] takes numbers"));
}

TEST_CASE("elements and slices are added to a tensor", "[scatter]") {
  Given g;
  const DType dtype = GENERATE(DType::i64, DType::i32);
  const Var index = g.places({1, 1, 0, 2, 2, 2}, {2, 3}, dtype);
  const Var source = g.numbers({10, 20, 30, 40, 50, 60}, {2, 3});
  const Var y = scatter_add(g.x, 1, index, source);
  CHECK(elements(y) == Numbers{30, 31, 2, 3, 4, 155});
  CHECK(elements(gradient(y * y, source)) == Numbers{62, 62, 60, 310, 310, 310});
  CHECK(elements(gradient(y, g.x)) == Numbers{1, 1, 1, 1, 1, 1});
  CHECK(elements(index_add(g.x, 0, g.places({1, 1}, {2}, dtype), source)) ==
        Numbers{0, 1, 2, 53, 74, 95});
  // A tensor that is added to itself.
  CHECK(elements(scatter_add(g.x, 1, index, g.x)) == Numbers{2, 2, 2, 3, 4, 17});
  CHECK(elements(scatter_add(g.x, 1, g.places({}, {2, 0}), g.numbers({}, {2, 0}))) ==
        elements(g.x));
  const Tensor few = Tensor::from<std::int64_t>({250, 3}, {2}).to(DType::u8);
  const Var some = g.tape.constant(few);
  const Tensor sums = scatter_add(some, 0, g.places({0, 1}, {2}), some).value();
  CHECK(sums.dtype() == DType::u8);
  CHECK(sums.at(0) == 244);
}

TEST_CASE("sums at positions of a tensor say what does not fit", "[scatter]") {
  Given g;
  const Var index = g.places({0, 1, 0}, {1, 3});
  const Var three = g.numbers({1, 2, 3}, {1, 3});
  CHECK_THROWS_WITH(scatter_add(g.x, 0, index, g.x),
                    Contains("[scatter_add] the source has shape"));
  CHECK_THROWS_AS(scatter_add(g.x, 0, g.x, three), DTypeError);
  CHECK_THROWS_AS(scatter_add(g.x, 0, index, cast(three, DType::f32)), DTypeError);
  CHECK_THROWS_WITH(scatter_add(g.x, 0, g.places({0, 2, 0}, {1, 3}), three).value(),
                    Contains("[scatter_add] index 2 at element 1"));
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  CHECK_THROWS_WITH(scatter_add(g.x, 0, g.places({0, 0, least}, {1, 3}), three).value(),
                    Contains("index -9223372036854775808 at element 2"));
  CHECK_THROWS_WITH(index_add(g.x, 0, g.places({-1}, {1}), three).value(), Contains("index -1"));
  CHECK_THROWS_AS(index_add(g.x, 1, g.places({0}, {1}), three), ShapeError);
  const Var truth = g.tape.constant(Tensor::zeros({2, 3}, DType::boolean));
  CHECK_THROWS_WITH(scatter_add(truth, 0, g.places({0, 0, 0, 0, 0, 0}, {2, 3}), truth),
                    Contains("[scatter_add] takes numbers"));
  CHECK_THROWS_AS(index_add(truth, 0, g.places({0, 1}, {2}), truth), DTypeError);
}

TEST_CASE("scatter and index say what does not fit", "[scatter]") {
  Given g;
  const Var index_of_three = g.places({0, 1, 0}, {1, 3});
  const Var three = g.numbers({1, 2, 3}, {1, 3});
  CHECK_THROWS_WITH(scatter(g.x, 1, index_of_three, three),
                    Contains("[scatter] the index has shape (1, 3) for shape (2, 3)"));
  CHECK_THROWS_WITH(scatter(g.x, 0, index_of_three, g.x), Contains("the source has shape (2, 3)"));
  CHECK_THROWS_AS(scatter(g.x, 0, g.x, three), DTypeError);
  CHECK_THROWS_AS(scatter(g.x, 0, index_of_three, cast(three, DType::f32)), DTypeError);
  CHECK_THROWS_WITH(scatter(g.x, 0, g.places({0, 2, 0}, {1, 3}), three).value(),
                    Contains("[scatter] index 2 at element 1"));
  CHECK_THROWS_WITH(index_copy(g.x, 0, g.places({-1}, {1}), three).value(), Contains("index -1"));
  CHECK_THROWS_AS(index_copy(g.x, 1, g.places({0}, {1}), three), ShapeError);
  CHECK_THROWS_WITH(index(g.x, {g.places({0}, {1}), g.places({3}, {1})}).value(),
                    Contains("[ravel_multi_index] index 3 at element 0"));
  CHECK_THROWS_WITH(index(g.x, {Var(), Var()}), Contains("[index] 0 of 2 axes are indexed"));
  CHECK_THROWS_AS(index(g.x, std::initializer_list<Var>{}), ShapeError);
  CHECK_THROWS_AS(index(g.x, {g.x}), DTypeError);
  const Var truth = g.tape.constant(Tensor::zeros({3}, DType::boolean));
  CHECK_THROWS_WITH(index(g.x, {truth}), Contains("a condition of shape (3) at axis 0 of (2, 3)"));
  CHECK_THROWS_AS(index_put(g.x, {g.places({0}, {1})}, cast(three, DType::f32)), DTypeError);
  CHECK_THROWS_AS(index_put(g.x, {g.places({0}, {1})}, g.numbers({1, 2}, {2})), ShapeError);
  CHECK_THROWS_AS(masked_select(g.x, g.x), DTypeError);
  const Var sizes[] = {g.places({0}, {1})};
  CHECK_THROWS_AS(ravel_multi_index(sizes, {2, 3}), ShapeError);
}

}  // namespace
}  // namespace palimpsest::scatter_test
