#include "autodiff/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "autodiff/operations/random.h"
#include "tests/catch.h"

namespace palimpsest::tensor_test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("storage is aligned, shared by copies and reshapes, not by clones") {
  const Tensor x = Tensor::matrix({{1, 2, 3}, {4, 5, 6}});
  CHECK(reinterpret_cast<std::uintptr_t>(x.raw()) % buffer_alignment == 0);
  const Tensor copy = x;
  const Tensor flat = x.reshape({-1});
  const Tensor clone = x.clone();
  CHECK(flat.shape() == Shape{6});
  x.data<float>()[4] = 50;
  CHECK(copy.at(4) == 50);
  CHECK(flat.at(4) == 50);
  CHECK(clone.at(4) == 5);
  CHECK(x.to(DType::f32).raw() == x.raw());
}

TEST_CASE("tensors made from values") {
  CHECK(to_string(Tensor::vector({1, 2.5}).type()) == "f32 (2)");
  CHECK(Tensor::from<std::int64_t>({1, 2, 3, 4}, {2, 2}).at(3) == 4);
  CHECK(Tensor::from(std::vector<double>{1, 2}, {2, 1}).dtype() == DType::f64);
  CHECK(Tensor::from({true, false}, {2}).at(0) == 1);
  CHECK(Tensor::full({2}, 0.1, DType::bf16).at(1) == static_cast<float>(BFloat16(0.1f)));
  CHECK(Tensor::ones({3}, DType::i32).at(2) == 1);
  CHECK(Tensor::zeros({0, 3}).elements() == 0);
  CHECK(Tensor::scalar(7).item<int>() == 7);
  CHECK(same_bits(Tensor::arange(3, DType::f32), Tensor::vector({0, 1, 2})));
}

TEST_CASE("what does not fit a tensor is refused") {
  const Tensor x = Tensor::matrix({{1, 2, 3}, {4, 5, 6}});
  CHECK_THROWS_WITH(Tensor::from({1.0, 2.0}, {3}), Contains("2 values") && Contains("(3)"));
  CHECK_THROWS_WITH(Tensor::matrix({{1, 2}, {3}}), Contains("a row of 1"));
  CHECK_THROWS_WITH(x.reshape({4, 2}), Contains("6 elements") && Contains("(4, 2)"));
  CHECK_THROWS_WITH(x.reshape({-1, 4}), Contains("6 elements"));
  CHECK_THROWS_WITH(x.item(), Contains("(2, 3)") && Contains("reduce it"));
  CHECK_THROWS_WITH(x.at(6), Contains("index 6") && Contains("(2, 3); give 0 to 5"));
  CHECK_THROWS_WITH(x.data<double>(), Contains("f32 (2, 3)") && Contains("not f64") &&
                                          Contains("convert it with to()"));
  CHECK_THROWS_WITH(Tensor().at(0), Contains("this Tensor is empty"));
}

TEST_CASE("random tensors depend on their seed alone and keep their distribution") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16);
  const Tensor u = Tensor::uniform({20000}, 5, -1, 3, dtype);
  const Tensor n = Tensor::normal({20000}, 5, 2, 0.5, dtype);
  CHECK(same_bits(u, Tensor::uniform({20000}, 5, -1, 3, dtype)));
  CHECK(!same_bits(u, Tensor::uniform({20000}, 6, -1, 3, dtype)));
  double mean = 0, low = 1e9, high = -1e9, normal_mean = 0, square = 0;
  for (std::int64_t i = 0; i < u.elements(); ++i) {
    mean += u.at(i) / 20000;
    low = std::min(low, u.at(i));
    high = std::max(high, u.at(i));
    normal_mean += n.at(i) / 20000;
    square += std::pow(n.at(i) - 2, 2) / 20000;
  }
  CHECK_THAT(mean, Catch::Matchers::WithinAbs(1, 0.04));
  CHECK(low >= -1);
  CHECK(high <= 3);
  CHECK_THAT(normal_mean, Catch::Matchers::WithinAbs(2, 0.02));
  CHECK_THAT(std::sqrt(square), Catch::Matchers::WithinAbs(0.5, 0.02));
  CHECK_THROWS_WITH(Tensor::normal({2}, 1, 0, -1, dtype),
                    Catch::Matchers::Contains("the deviation of normal numbers is -1"));
  CHECK(Tensor::normal({2}, 1, 3, 0, dtype).at(1) == 3);
}

TEST_CASE("bits are compared, not numbers") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(same_bits(Tensor::vector({nan}), Tensor::vector({nan})));
  CHECK(!same_bits(Tensor::vector({0.0f}), Tensor::vector({-0.0f})));
  CHECK(!same_bits(Tensor::vector({1}), Tensor::vector({1}).reshape({1, 1})));
  CHECK(!same_bits(Tensor::vector({1}), Tensor::from<std::int32_t>({0x3f800000}, {1})));
}

TEST_CASE("tensors print in a few lines however large") {
  CHECK(to_string(Tensor()) == "undefined tensor");
  CHECK(to_string(Tensor::scalar(2.5)) == "f32 ()\n2.5");
  CHECK(to_string(Tensor::matrix({{1, 2}, {3, 4.25}})) == "f32 (2, 2)\n[[1, 2],\n [3, 4.25]]");
  CHECK(to_string(Tensor::from({true, false}, {2})) == "bool (2)\n[true, false]");
  CHECK(to_string(Tensor::arange(100)) == "i64 (100)\n[0, 1, 2, ..., 97, 98, 99]");
  CHECK(to_string(Tensor::zeros({0})) == "f32 (0)\n[]");
  CHECK(to_string(Tensor::zeros({100, 100, 100})).size() < 2000);
  CHECK(to_string(Tensor::zeros({7, 7, 7, 7, 7, 7, 7, 7})).size() < 8000);
}

TEST_CASE("integers stay exact") {
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(Tensor::from({odd}, {}).item<std::int64_t>() == odd);
  CHECK(Tensor::from({most}, {}).item<std::int64_t>() == most);
  CHECK(to_string(Tensor::from({most}, {1})) == "i64 (1)\n[9223372036854775807]");
}

TEST_CASE("numbers beyond an integer type become its ends, NaN 0") {
  const auto converted = [](double x, DType dtype) {
    return Tensor::scalar(x, DType::f64).to(dtype).item<std::int64_t>();
  };
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(converted(-2.9, DType::i32) == -2);
  CHECK(converted(3e9, DType::i32) == std::numeric_limits<std::int32_t>::max());
  CHECK(converted(-infinity, DType::i32) == std::numeric_limits<std::int32_t>::min());
  CHECK(converted(0x1p63, DType::i64) == std::numeric_limits<std::int64_t>::max());
  CHECK(converted(-0x1p63, DType::i64) == std::numeric_limits<std::int64_t>::min());
  CHECK(converted(std::nan(""), DType::i64) == 0);
  CHECK(Tensor::full({}, 1e300, DType::i32).item<int>() == std::numeric_limits<int>::max());
}

TEST_CASE("uniform tensors never reach their upper end, and share no stream with a tape") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  const double low = GENERATE(-1.0, 0.0, 1.0);
  Tape tape;
  const Tensor own = Tensor::uniform({200000}, 0, low, low + 1, dtype);
  const Tensor recorded = uniform(tape, {200000}, low, low + 1, dtype).value();
  double high = low;
  for (std::int64_t i = 0; i < own.elements(); ++i) {
    high = std::max({high, own.at(i), recorded.at(i)});
  }
  CHECK(high < low + 1);
  CHECK(!same_bits(own, recorded));
}

TEST_CASE("tensors that hold nothing are refused, not read") {
  CHECK_THROWS_AS(Tensor().clone(), ArgumentError);
  CHECK_THROWS_AS(Tensor().to(DType::f64), ArgumentError);
  CHECK(!same_bits(Tensor(), Tensor::vector({1})));
  CHECK(!same_bits(Tensor::zeros({}), Tensor()));
  CHECK_THROWS_AS(Tensor::uniform({2}, 0, 1, 1), ArgumentError);
  CHECK_THROWS_AS(Tensor::uniform({2}, 0, 0, 1, DType::i32), DTypeError);
}

}  // namespace
}  // namespace palimpsest::tensor_test
