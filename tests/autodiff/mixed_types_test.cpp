#include <limits>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::mixed_types_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_CASE("integers and fractions meet in f32, whole numbers leave integers what they are") {
  Tape tape;
  const Var i = tape.constant(Tensor::from<std::int64_t>({-3, 0, 2}, {3}));
  const Var truth = tape.constant(Tensor::from<std::int64_t>({1, 0}, {2}).to(DType::boolean));
  constexpr float huge = std::numeric_limits<float>::infinity();
  CHECK((i + 1).dtype() == DType::i64);
  CHECK(same_bits((i + 0.5).value(), Tensor::vector({-2.5, 0.5, 2.5})));
  CHECK(same_bits((0.5 - i).value(), Tensor::vector({3.5, 0.5, -1.5})));
  CHECK(same_bits((i * 0.5).value(), Tensor::vector({-1.5, 0, 1})));
  CHECK(same_bits((i / 0.5).value(), Tensor::vector({-6, 0, 4})));
  CHECK(same_bits((0.5 / (i + 1)).value(), Tensor::vector({-0.25, 0.5, 0.5f / 3})));
  CHECK(same_bits((cast(i, DType::i32) - 0.5).value(), Tensor::vector({-3.5, -0.5, 1.5})));
  CHECK(same_bits((truth + 0.5).value(), Tensor::vector({1.5, 0.5})));
  CHECK(same_bits(maximum(i, 0.5).value(), Tensor::vector({0.5, 0.5, 2})));
  CHECK(same_bits(where(i > 0.5, i, infinity).value(), Tensor::vector({huge, huge, 2})));
  CHECK(same_bits((i < infinity).value(), Tensor::ones({3}, DType::boolean)));
}

TEST_CASE("integers have opposites and absolute values") {
  const DType dtype = GENERATE(DType::i64, DType::i32);
  Tape tape;
  const Var x = tape.constant(Tensor::from({-3.0, 0.0, 2.0}, {3}).to(dtype));
  CHECK(same_bits(abs(x).value(), Tensor::from({3.0, 0.0, 2.0}, {3}).to(dtype)));
  CHECK(same_bits(negate(x).value(), Tensor::from({3.0, 0.0, -2.0}, {3}).to(dtype)));
  CHECK(same_bits((-x).value(), negate(x).value()));
  const double least = dtype == DType::i64 ? -0x1p63 : -0x1p31;
  const Var end = tape.constant(Tensor::from({least}, {1}).to(dtype));
  CHECK(same_bits(abs(end).value(), end.value()));
}

TEST_CASE("bools are compared, false before true") {
  Tape tape;
  const auto bools = [&](std::vector<double> values) {
    return tape.constant(
        Tensor::from(values, {static_cast<std::int64_t>(values.size())}).to(DType::boolean));
  };
  const Var a = bools({0, 0, 1, 1});
  const Var b = bools({0, 1, 0, 1});
  CHECK(same_bits(equal(a, b).value(), bools({1, 0, 0, 1}).value()));
  CHECK(same_bits(not_equal(a, b).value(), bools({0, 1, 1, 0}).value()));
  CHECK(same_bits((a < b).value(), bools({0, 1, 0, 0}).value()));
  CHECK(same_bits((a >= b).value(), bools({1, 0, 1, 1}).value()));
  CHECK(same_bits(equal(a, 1).value(), a.value()));
  CHECK(same_bits((a > 0.5).value(), a.value()));
}

}  // namespace
}  // namespace palimpsest::mixed_types_test
