#include <algorithm>
#include <cmath>
#include <vector>

#include "autodiff/operations/convolution.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"

namespace palimpsest::unfold_test {
namespace {

using Catch::Matchers::Contains;
using Numbers = std::vector<double>;

Numbers elements(const Var& y) {
  const Tensor value = y.value();
  Numbers list;
  for (std::int64_t i = 0; i < value.elements(); ++i) list.push_back(value.at(i));
  return list;
}
bool are_near(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x - y) <= 1e-12; });
}

TEST_CASE("a product with unfolded patches is a convolution", "[unfold]") {
  Tape tape;
  const Var x = tape.constant(Tensor::normal({2, 3, 6, 5}, 1, 0, 1, DType::f64));
  const Var w = tape.constant(Tensor::normal({4, 3, 3, 2}, 2, 0, 1, DType::f64));
  const Var patches = unfold(x, {3, 2}, {.stride = {2, 1}, .padding = 1, .dilation = {1, 2}});
  const Var y = conv2d(x, w, {}, {.stride = {2, 1}, .padding = 1, .dilation = {1, 2}});
  CHECK(are_near(elements(matmul(reshape(w, {4, -1}), patches)), elements(y)));
  // Each element is added as often as patches read it.
  const Var ones = tape.constant(Tensor::ones({1, 1, 4}));
  CHECK(elements(fold(unfold(ones, 2), {4}, 2)) == Numbers{1, 2, 2, 1});
  const Var whole = tape.constant(Tensor::from<std::int64_t>({1, 2, 3}, {1, 1, 3}));
  CHECK(elements(unfold(whole, 2, {.padding = 1})) == Numbers{0, 1, 2, 3, 1, 2, 3, 0});
  // Kernels that reach from padding to padding read zeros only.
  const Var wide = unfold(ones, 2, {.padding = 3, .dilation = 9});
  CHECK(wide.shape() == Shape{1, 2, 1});
  CHECK(elements(wide) == Numbers{0, 0});
}

TEST_CASE("patches say what does not fit", "[unfold]") {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2, 3}));
  const Var image = tape.constant(Tensor::ones({1, 4, 2}));
  CHECK_THROWS_WITH(unfold(x, 2), Contains("[unfold] input (2, 3) is not (batch, channels"));
  CHECK_THROWS_WITH(unfold(image, 3), Contains("[unfold] kernel 3 with dilation 1 is larger"));
  CHECK_THROWS_AS(unfold(image, 1, {.stride = 0}), ArgumentError);
  CHECK_THROWS_WITH(fold(image, {4}, 2),
                    Contains("[fold] input (1, 4, 2) is not (batch, channels·2, 3)"));
  CHECK_THROWS_AS(fold(image, std::initializer_list<std::int64_t>{}, 2), ArgumentError);
  CHECK_THROWS_AS(fold(tape.constant(Tensor::zeros({1, 2, 3}, DType::boolean)), {4}, 2),
                  DTypeError);
}

}  // namespace
}  // namespace palimpsest::unfold_test
