#include "autodiff/operations/shape.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"
#include "tests/catch.h"

namespace palimpsest::shape_operations_test {
namespace {

using Catch::Matchers::Contains;
using Whole = std::vector<std::int64_t>;

/// The elements of a value as integers.
Whole elements(const Var& y) {
  const Tensor value = y.value();
  Whole list;
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    list.push_back(static_cast<std::int64_t>(value.at(i)));
  }
  return list;
}

/// 0, 1, … in the given shape.
Var counted(Tape& tape, const Shape& shape, DType dtype = DType::i32) {
  return tape.constant(Tensor::arange(shape.elements(), dtype).reshape(shape));
}

TEST_CASE("permuted elements are where their places say, whatever their size") {
  const DType dtype = GENERATE(DType::f64, DType::i32, DType::f16, DType::boolean);
  const auto [shape, axes] = GENERATE(table<Shape, Axes>({
      {Shape{67, 45}, Axes{1, 0}},
      {Shape{3, 40, 5}, Axes{2, 0, 1}},
      {Shape{2, 3, 35, 33}, Axes{0, 3, 1, 2}},
      {Shape{2, 3, 35, 33}, Axes{0, 2, 3, 1}},
      {Shape{4, 5, 6}, Axes{1, 0, 2}},
      {Shape{4, 1, 6}, Axes{2, 1, 0}},
      {Shape{2, 2, 2, 2, 2, 2, 2, 2}, Axes{7, 6, 5, 4, 3, 2, 1, 0}},
  }));
  INFO(name_of(dtype) << " " << to_string(shape));
  Tape tape;
  const Tensor x = Tensor::normal(shape, 3).to(dtype);
  const Tensor y = permute(tape.constant(x), axes).value();
  const auto from = strides_of(shape);
  std::int64_t wrong = 0;
  for (std::int64_t element = 0; element < y.elements(); ++element) {
    std::int64_t rest = element, source = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const int origin = axes[static_cast<std::size_t>(axis)];
      source += rest % y.shape()[axis] * from[static_cast<std::size_t>(origin)];
      rest /= y.shape()[axis];
      REQUIRE(y.shape()[axis] == shape[origin]);
    }
    if (y.at(element) != x.at(source)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("slices follow Python") {
  Tape tape;
  const Var x = counted(tape, {6});
  const auto [range, expected] = GENERATE(table<Slice, Whole>({
      {Slice{}, Whole{0, 1, 2, 3, 4, 5}},
      {Slice{2, 4}, Whole{2, 3}},
      {Slice{.start = -2}, Whole{4, 5}},
      {Slice{.stop = -4}, Whole{0, 1}},
      {Slice{1, 100, 2}, Whole{1, 3, 5}},
      {Slice{.step = -1}, Whole{5, 4, 3, 2, 1, 0}},
      {Slice{.step = -4}, Whole{5, 1}},
      {Slice{4, 1, -2}, Whole{4, 2}},
      {Slice{-100, 2}, Whole{0, 1}},
      {Slice{4, 2}, Whole{}},
      {Slice{.start = 9}, Whole{}},
      {Slice{.stop = 2, .step = -1}, Whole{5, 4, 3}},
  }));
  CHECK(elements(slice(x, 0, range)) == expected);
}

TEST_CASE("operations that move elements") {
  Tape tape;
  const Var x = counted(tape, {2, 3});  // 0 1 2 / 3 4 5
  const Var y = counted(tape, {2, 1});
  CHECK(elements(slice(x, {{.step = -1}, {1}})) == Whole{4, 5, 1, 2});
  CHECK(elements(select(x, -1, -2)) == Whole{1, 4});
  CHECK(select(x, 1, 0).shape() == Shape{2});
  CHECK(elements(flip(x)) == Whole{5, 4, 3, 2, 1, 0});
  CHECK(elements(flip(x, {1})) == Whole{2, 1, 0, 5, 4, 3});
  CHECK(elements(roll(x, 1, 1)) == Whole{2, 0, 1, 5, 3, 4});
  CHECK(elements(roll(x, -4, 1)) == Whole{1, 2, 0, 4, 5, 3});
  CHECK(elements(pad(x, {{0, 1}, {1, 0}}, 9)) == Whole{9, 0, 1, 2, 9, 3, 4, 5, 9, 9, 9, 9});
  CHECK(elements(pad(x, {{0, 0}, {2, 1}}, PadMode::reflect)) ==
        Whole{2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4});
  CHECK(elements(pad(x, {{1, 0}, {0, 2}}, PadMode::replicate)) ==
        Whole{0, 1, 2, 2, 2, 0, 1, 2, 2, 2, 3, 4, 5, 5, 5});
  CHECK(elements(concat({x, y, x}, 1)) == Whole{0, 1, 2, 0, 0, 1, 2, 3, 4, 5, 1, 3, 4, 5});
  CHECK(elements(concat({x, x}, 0)) == Whole{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
  CHECK(elements(stack({x, x}, 2)) == Whole{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(elements(split(x, {1, 2}, 1)[1]) == Whole{1, 2, 4, 5});
  const auto [first, second] = unstack<2>(x);
  CHECK(first.shape() == Shape{3});
  CHECK(elements(second) == Whole{3, 4, 5});
  CHECK(elements(unstack<3>(x, -1)[1]) == Whole{1, 4});
  CHECK(unstack<1>(unsqueeze(x, 0))[0].shape() == Shape{2, 3});
  CHECK(elements(chunk(x, 3, 1)[2]) == Whole{2, 5});
  CHECK(elements(tile(x, {2, 2})) ==
        Whole{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(elements(repeat(x, 2, 1)) == Whole{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(elements(repeat(x, 2, 0)) == Whole{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(elements(broadcast_to(y, {2, 2, 2})) == Whole{0, 0, 1, 1, 0, 0, 1, 1});
  CHECK(concat({x, counted(tape, {2, 1}, DType::f32)}, 1).dtype() == DType::f32);
}

TEST_CASE("chunks that do not divide: the last is smaller, and there may be fewer") {
  Tape tape;
  const auto sizes = [&](std::int64_t n, std::int64_t count) {
    std::vector<std::int64_t> result;
    for (const Var& part : chunk(counted(tape, {n}), count, 0)) result.push_back(part.shape()[0]);
    return result;
  };
  using Sizes = std::vector<std::int64_t>;
  CHECK(sizes(7, 3) == Sizes{3, 3, 1});
  CHECK(sizes(6, 4) == Sizes{2, 2, 2});
  CHECK(sizes(2, 5) == Sizes{1, 1});
  CHECK(sizes(8, 4) == Sizes{2, 2, 2, 2});
  CHECK(sizes(0, 2) == Sizes{0, 0});
  CHECK(elements(chunk(counted(tape, {7}), 3, 0)[2]) == Whole{6});
}

TEST_CASE("shapes after operations that only name axes anew") {
  Tape tape;
  const Var x = counted(tape, {2, 1, 3, 1});
  CHECK(flatten(x).shape() == Shape{6});
  CHECK(flatten(x, 1, 2).shape() == Shape{2, 3, 1});
  CHECK(flatten(counted(tape, {})).shape() == Shape{1});
  CHECK(squeeze(x).shape() == Shape{2, 3});
  CHECK(squeeze(x, {-1}).shape() == Shape{2, 1, 3});
  CHECK(unsqueeze(x, 0).shape() == Shape{1, 2, 1, 3, 1});
  CHECK(unsqueeze(x, -1).shape() == Shape{2, 1, 3, 1, 1});
  CHECK(transpose(x).shape() == Shape{2, 1, 1, 3});
}

TEST_CASE("what is moved nowhere is not recorded") {
  Tape tape;
  const Var x = counted(tape, {2, 3});
  CHECK(slice(x, {{}, {0, 3}}) == x);
  CHECK(permute(x, {0, 1}) == x);
  CHECK(pad(x, {{0, 0}, {0, 0}}) == x);
  CHECK(roll(x, 3, 1) == x);
  CHECK(concat({x}, 0) == x);
  CHECK(broadcast_to(x, {2, 3}) == x);
}

TEST_CASE("the adjoint of split makes nothing for the parts that were not used") {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({100, 4}));
  const Var y = sum(split(x, {30, 50, 20}, 0)[1]);
  const std::uint32_t before = tape.node_count();
  const Var adjoint = gradient(y, x);
  for (NodeId node = before; node < tape.node_count(); ++node) {
    if (node != adjoint.node()) CHECK(tape.bytes(tape.first_output(node)) <= 50 * 4 * 4);
  }
  CHECK(elements(sum(adjoint, {1}))[29] == 0);
  CHECK(elements(sum(adjoint, {1}))[30] == 4);
  CHECK(elements(sum(adjoint))[0] == 200);
}

TEST_CASE("operations that move elements say what does not fit") {
  Tape tape;
  const Var x = counted(tape, {2, 3});
  const std::vector<Var> nothing;
  CHECK_THROWS_WITH(permute(x, {0}), Contains("[permute] 1 axes are given for shape (2, 3)"));
  CHECK_THROWS_WITH(permute(x, {0, 0}), Contains("named twice"));
  CHECK_THROWS_WITH(transpose(x, 0, 2), Contains("[transpose] axis 2 is out of range"));
  CHECK_THROWS_WITH(squeeze(x, {0}), Contains("has size 2, not 1"));
  CHECK_THROWS_WITH(flatten(x, 1, 0), Contains("[flatten] axis 1 comes after axis 0"));
  CHECK_THROWS_WITH(slice(x, 0, {.step = 0}), Contains("[slice] the step is 0"));
  CHECK_THROWS_WITH(slice(x, {{}, {}, {}}), Contains("[slice] 3 ranges for shape (2, 3)"));
  CHECK_THROWS_WITH(select(x, 0, 2), Contains("[select] position 2") && Contains("use -2 to 1"));
  CHECK_THROWS_WITH(pad(x, {{1, 1}}), Contains("[pad] 1 widths for shape (2, 3)"));
  CHECK_THROWS_WITH(pad(x, {{0, 0}, {-1, 1}}), Contains("(-1, 1) are negative"));
  CHECK_THROWS_WITH(pad(x, {{2, 0}, {0, 0}}, PadMode::reflect),
                    Contains("too short") && Contains("at most 1"));
  CHECK_THROWS_AS(concat(nothing, 0), ArgumentError);
  CHECK_THROWS_WITH(concat({x, counted(tape, {3, 2})}, 0),
                    Contains("[concat] shapes (2, 3) and (3, 2) differ in axes other than axis 0"));
  CHECK_THROWS_AS(stack({x, counted(tape, {3, 2})}, 0), ShapeError);
  CHECK_THROWS_WITH(split(x, {1, 1}, 1),
                    Contains("[split] parts of 2 elements in total") && Contains("sum is 3"));
  CHECK_THROWS_WITH(split(x, {-1, 4}, 1), Contains("size -1"));
  CHECK_THROWS_WITH(unstack<2>(x, 1), Contains("[split] parts of 2 elements in total"));
  CHECK_THROWS_WITH(chunk(x, 0, 1), Contains("[chunk] cannot make 0 parts of axis 1"));
  CHECK_THROWS_AS(tile(x, {1}), ShapeError);
  CHECK_THROWS_AS(repeat(x, -1, 0), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::shape_operations_test
