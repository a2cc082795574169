#include "autodiff/operations/index.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "tests/catch.h"

namespace palimpsest::index_test {
namespace {

using Catch::Matchers::Contains;
using Whole = std::vector<std::int64_t>;

Whole elements(const Var& y) {
  const Tensor value = y.value();
  Whole list;
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    list.push_back(static_cast<std::int64_t>(value.at(i)));
  }
  return list;
}

TEST_CASE("elements are read and added where the index says") {
  Tape tape;
  const DType dtype = GENERATE(DType::i64, DType::i32);
  const auto index = [&](const Whole& places, Shape shape) {
    return tape.constant(Tensor::from(places, shape).to(dtype));
  };
  const Var x = tape.constant(Tensor::arange(6, DType::f32).reshape({2, 3}));  // 0 1 2 / 3 4 5
  CHECK(elements(gather(x, 1, index({2, 0, 1, 1}, {2, 2}))) == Whole{2, 0, 4, 4});
  CHECK(elements(gather(x, 0, index({1, 0, 1}, {1, 3}))) == Whole{3, 1, 5});
  CHECK(elements(scatter_add(x, 1, index({0, 0, 3, 1, 3, 3}, {2, 3}), 4)) ==
        Whole{1, 0, 0, 2, 0, 3, 0, 9});
  CHECK(elements(index_select(x, 1, index({2, 2, 0}, {3}))) == Whole{2, 2, 0, 5, 5, 3});
  CHECK(index_select(x, 0, index({1, 0, 1, 1}, {2, 2})).shape() == Shape{2, 2, 3});
  CHECK(elements(index_select(x, 0, index({1}, {}))) == Whole{3, 4, 5});
  CHECK(elements(index_add(x, 0, index({2, 2}, {2}), 3)) == Whole{0, 0, 0, 0, 0, 0, 3, 5, 7});
  CHECK(elements(index_add(x, 1, index({1, 0, 1}, {3}), 2)) == Whole{1, 2, 4, 8});
  // An index without axes: all of x is one slice, and the axis may come after its last one.
  CHECK(elements(index_add(x, 0, index({1}, {}), 2)) == Whole{0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5});
  CHECK(index_add(x, 2, index({1}, {}), 4).shape() == Shape{2, 3, 4});
  CHECK(elements(index_add(x, 2, index({0}, {}), 1)) == Whole{0, 1, 2, 3, 4, 5});
  CHECK(elements(embedding(x, index({1, 1}, {2, 1}))) == Whole{3, 4, 5, 3, 4, 5});
  CHECK(elements(one_hot(index({1, 0}, {2}), 3)) == Whole{0, 1, 0, 1, 0, 0});
  CHECK(one_hot(index({1}, {}), 2, DType::bf16).type() == ValueType{{2}, DType::bf16});
  CHECK(elements(gather(tape.constant(Tensor::ones({2, 3}, DType::boolean)), 1,
                        index({2, 0}, {2, 1}))) == Whole{1, 1});
}

TEST_CASE("an index out of range is found when the kernel runs, and the tape stays usable") {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({2, 3}));
  const auto index = [&](const Whole& places, Shape shape) {
    return tape.constant(Tensor::from(places, shape));
  };
  const Var bad = gather(x, 1, index({0, 3}, {2, 1}));
  CHECK_THROWS_AS(bad.value(), ArgumentError);
  CHECK_THROWS_WITH(bad.value(), Contains("[gather] index 3 at element 1") &&
                                     Contains("an axis of 3") && Contains("index_test.cpp"));
  CHECK_THROWS_WITH(scatter_add(x, 0, index({0, 0, 0, 0, 0, -1}, {2, 3}), 5).value(),
                    Contains("[scatter_add] index -1 at element 5") && Contains("an axis of 5"));
  CHECK_THROWS_WITH(index_select(x, 0, index({2}, {1})).value(), Contains("index 2"));
  CHECK_THROWS_WITH(index_add(x, 0, index({0, 9}, {2}), 3).value(), Contains("index 9"));
  CHECK_THROWS_WITH(one_hot(index({4}, {1}), 4).value(), Contains("[one_hot] index 4"));
  CHECK(elements(gather(x, 1, index({0, 2}, {2, 1}))) == Whole{1, 1});
}

TEST_CASE("operations with an index say what does not fit") {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2, 3}));
  const Var places = tape.constant(Tensor::zeros({2, 2}, DType::i64));
  const Var truth = tape.constant(Tensor::zeros({2, 2}, DType::boolean));
  CHECK_THROWS_WITH(gather(x, 0, places),
                    Contains("[gather] the index has shape (2, 2) for shape (2, 3)"));
  CHECK_THROWS_WITH(gather(x, 0, x), Contains("the index is f32 (2, 3); give i64 or i32"));
  CHECK_THROWS_AS(gather(x, 2, places), ShapeError);
  CHECK_THROWS_AS(scatter_add(x, 0, places, 4), ShapeError);
  CHECK_THROWS_AS(scatter_add(truth, 0, places, 4), DTypeError);
  CHECK_THROWS_WITH(index_add(x, 0, places, 4), Contains("give it the tensor's axes from axis"));
  CHECK_THROWS_AS(index_add(x, 1, places, 4), ShapeError);
  CHECK_THROWS_WITH(embedding(tape.constant(Tensor::ones({3})), places),
                    Contains("[embedding] the table is (3)"));
  CHECK_THROWS_AS(one_hot(x, 3), DTypeError);
}

}  // namespace
}  // namespace palimpsest::index_test
