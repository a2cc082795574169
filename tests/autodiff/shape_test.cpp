#include "autodiff/shape.h"

#include <sstream>

#include "autodiff/tensor.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::shape_test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("axes count from both ends, and others are errors") {
  const Shape shape{2, 3, 4};
  CHECK(shape[0] == 2);
  CHECK(shape[-1] == 4);
  CHECK(shape[-3] == 2);
  CHECK_THROWS_AS(shape[3], ShapeError);
  CHECK_THROWS_AS(shape[-4], ShapeError);
  CHECK_THROWS_AS(shape[9], ShapeError);
  CHECK_THROWS_AS(Shape{}[0], ShapeError);
  Shape changed = shape;
  changed[-1] = 7;
  CHECK(changed == Shape{2, 3, 7});
}

TEST_CASE("operands broadcast as in NumPy") {
  const auto [a, b, expected] = GENERATE(table<Shape, Shape, Shape>({
      {{}, {}, {}},
      {{}, {2, 3}, {2, 3}},
      {{3}, {2, 3}, {2, 3}},
      {{2, 1}, {3}, {2, 3}},
      {{2, 1}, {1, 3}, {2, 3}},
      {{0, 3}, {1, 3}, {0, 3}},
      {{1}, {0}, {0}},
      {{4, 1, 2}, {5, 1}, {4, 5, 2}},
  }));
  CHECK(broadcast(a, b, "add", Where::current()) == expected);
  CHECK(broadcast(b, a, "add", Where::current()) == expected);
}

TEST_CASE("shapes that do not broadcast are named") {
  const auto [a, b] =
      GENERATE(table<Shape, Shape>({{{2}, {3}}, {{2, 3}, {2}}, {{0}, {2}}, {{2, 1, 4}, {3, 3}}}));
  CHECK_THROWS_WITH(broadcast(a, b, "add", Where::current()),
                    Contains("[add] shapes " + to_string(a) + " and " + to_string(b)) &&
                        Contains("sizes must be equal or 1") && Contains("shape_test.cpp"));
}

TEST_CASE("axes count from either end") {
  const Shape shape{2, 3, 4};
  CHECK(shape.size(-1) == 4);
  CHECK(shape.size(0) == 2);
  CHECK(shape.wrap(-3) == 0);
  CHECK_THROWS_AS(shape.wrap(3), ShapeError);
  CHECK_THROWS_WITH(shape.wrap(-4),
                    Contains("axis -4") && Contains("(2, 3, 4)") && Contains("use -3 to 2"));
}

TEST_CASE("elements and strides") {
  const auto [shape, elements] = GENERATE(table<Shape, std::int64_t>(
      {{Shape{}, 1}, {Shape{0}, 0}, {Shape{2, 3, 4}, 24}, {Shape{2, 0, 4}, 0}}));
  CHECK(shape.elements() == elements);
  const auto strides = strides_of({2, 3, 4});
  CHECK(std::vector<std::int64_t>(strides.begin(), strides.begin() + 3) ==
        std::vector<std::int64_t>{12, 4, 1});
}

TEST_CASE("axes are inserted and erased") {
  Shape shape{2, 4};
  shape.insert(1, 3);
  CHECK(shape == Shape{2, 3, 4});
  shape.insert(0, 1);
  CHECK(shape == Shape{1, 2, 3, 4});
  shape.erase(2);
  CHECK(shape == Shape{1, 2, 4});
  shape.erase(2);
  CHECK(shape == Shape{1, 2});
  CHECK(to_string(shape) == "(1, 2)");
  CHECK(to_string(Shape{}) == "()");
  std::ostringstream stream;
  stream << shape << " " << DType::bf16 << " " << Shape{};
  CHECK(stream.str() == "(1, 2) bf16 ()");
  CHECK(shape[-1] == 2);

  CHECK_THROWS_WITH(shape.insert(3, 1), Contains("no place 3 in shape (1, 2); give 0 to 2"));
  CHECK_THROWS_AS(shape.insert(-1, 1), ShapeError);
  CHECK_THROWS_WITH(shape.erase(2), Contains("no place 2 in shape (1, 2); give 0 to 1"));
  CHECK_THROWS_AS(shape.erase(-1), ShapeError);
  CHECK_THROWS_WITH(Shape{}.erase(0), Contains("no place 0 in shape (), which has no axes"));
  CHECK(shape == Shape{1, 2});
}

TEST_CASE("sizes out of range are refused") {
  CHECK_THROWS_WITH((Shape{2, -1}), Contains("size -1"));
  CHECK_THROWS_WITH((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), Contains("at most 8 axes"));
  const int line = __LINE__ + 1;
  const std::string refusal = error_of([] { Tensor::zeros({2, -3}); });
  CHECK_THAT(refusal, Contains("[shape]") && Contains("size -3") &&
                          Contains("shape_test.cpp:" + std::to_string(line)));
  CHECK_THAT(error_of([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; }),
             Contains("[shape]") && Contains("not 10") && Contains("shape_test.cpp:"));
  const std::int64_t big = std::int64_t{1} << 40;
  CHECK_THROWS_WITH((Shape{big, big}.elements()),
                    Contains("more elements than any memory can hold"));
}

}  // namespace
}  // namespace palimpsest::shape_test
