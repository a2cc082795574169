#include "autodiff/dtype.h"

#include <cmath>
#include <limits>

#include "autodiff/tensor.h"
#include "tests/catch.h"

namespace palimpsest::dtype_test {
namespace {

template <class Half>
Half with_bits(std::uint32_t bits) {
  Half half;
  half.bits = static_cast<std::uint16_t>(bits);
  return half;
}

template <class Half>
float value(std::uint32_t bits) {
  return static_cast<float>(with_bits<Half>(bits));
}

/// The bit pattern of the largest finite number.
template <class Half>
constexpr std::uint32_t largest = std::is_same_v<Half, Float16> ? 0x7bffu : 0x7f7fu;

TEMPLATE_TEST_CASE("every 16-bit number survives widening and narrowing", "", BFloat16, Float16) {
  int changed = 0;
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const float wide = value<TestType>(bits);
    const TestType narrow(wide);
    const bool same = std::isnan(wide) ? std::isnan(static_cast<float>(narrow))
                                       : narrow == with_bits<TestType>(bits);
    changed += !same;
  }
  CHECK(changed == 0);
}

// For neighbours a < b: numbers below the middle round to a, numbers above it to b, and the middle
// to the even one.
TEMPLATE_TEST_CASE("narrowing rounds to the nearest, ties to even", "", BFloat16, Float16) {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < largest<TestType>; ++bits) {
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      const std::uint32_t low = bits | sign;
      const std::uint32_t high = low + 1;  // the next number away from zero
      const float a = value<TestType>(low);
      const float b = value<TestType>(high);
      const auto middle = static_cast<float>((static_cast<double>(a) + static_cast<double>(b)) / 2);
      const std::uint32_t even = (low & 1u) == 0 ? low : high;
      wrong += TestType(middle).bits != even;
      wrong += TestType(std::nextafter(middle, a)).bits != low;
      wrong += TestType(std::nextafter(middle, b)).bits != high;
    }
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("numbers too large become infinite, NaN stays NaN", "", BFloat16, Float16) {
  const std::uint32_t infinity = largest<TestType> + 1;
  const float top = value<TestType>(largest<TestType>);
  const float step = top - value<TestType>(largest<TestType> - 1);
  const float limit = top + step / 2;  // not a tie: the number above would be even
  CHECK(TestType(std::nextafter(limit, 0.0f)).bits == largest<TestType>);
  CHECK(TestType(limit).bits == infinity);
  CHECK(TestType(-limit).bits == (infinity | 0x8000u));
  CHECK(TestType(std::numeric_limits<float>::infinity()).bits == infinity);
  CHECK(std::isinf(value<TestType>(infinity)));
  for (const std::uint32_t word : {0x7f800001u, 0x7fc00000u, 0xffffffffu, 0x7f80ffffu}) {
    CHECK(std::isnan(static_cast<float>(TestType(std::bit_cast<float>(word)))));
  }
  CHECK(TestType(-0.0f).bits == 0x8000u);
}

TEST_CASE("arrays are narrowed to bf16 as their numbers are") {
  const std::uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  Tensor wide({0x10000, 6});
  std::size_t at = 0;
  for (std::uint32_t upper = 0; upper < 0x10000u; ++upper) {
    for (const std::uint32_t low : lower) {
      wide.data<float>()[at++] = std::bit_cast<float>(upper << 16 | low);
    }
  }
  const Tensor narrow = wide.to(DType::bf16);
  int wrong = 0;
  for (at = 0; at < wide.data<float>().size(); ++at) {
    wrong += narrow.data<BFloat16>()[at] != BFloat16(wide.data<float>()[at]);
  }
  CHECK(wrong == 0);
}

TEST_CASE("operands meet in the wider dtype") {
  const auto [a, b, expected] = GENERATE(table<DType, DType, DType>({
      {DType::f32, DType::f64, DType::f64},
      {DType::bf16, DType::f16, DType::f32},
      {DType::bf16, DType::bf16, DType::bf16},
      {DType::f16, DType::f32, DType::f32},
      {DType::i64, DType::bf16, DType::bf16},
      {DType::i32, DType::i64, DType::i64},
      {DType::boolean, DType::i32, DType::i32},
      {DType::boolean, DType::boolean, DType::boolean},
  }));
  CHECK(promote(a, b) == expected);
  CHECK(promote(b, a) == expected);
}

TEST_CASE("converting between dtypes") {
  const Tensor x = Tensor::from({-2.75, -0.25, 0.0, 0.5, 3.0}, {5});
  const auto [dtype, expected] = GENERATE(table<DType, std::vector<double>>({
      {DType::f32, {-2.75, -0.25, 0, 0.5, 3}},
      {DType::bf16, {-2.75, -0.25, 0, 0.5, 3}},
      {DType::f16, {-2.75, -0.25, 0, 0.5, 3}},
      {DType::i64, {-2, 0, 0, 0, 3}},
      {DType::i32, {-2, 0, 0, 0, 3}},
      {DType::boolean, {1, 1, 0, 1, 1}},
  }));
  const Tensor y = x.to(dtype);
  CHECK(y.bytes() == 5 * size_of(dtype));
  for (std::int64_t i = 0; i < 5; ++i) {
    CHECK(y.at(i) == expected[static_cast<std::size_t>(i)]);
    CHECK(y.to(DType::f64).at(i) == expected[static_cast<std::size_t>(i)]);
  }
}

}  // namespace
}  // namespace palimpsest::dtype_test
