#include "nn/initializers.h"

#include <cmath>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::initializers_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

const nn::init::Fans fans{100, 50};

struct Moments {
  double mean = 0, variance = 0, largest = 0;
};

Moments moments_of(const Tensor& tensor) {
  Moments made;
  const auto n = static_cast<double>(tensor.elements());
  for (std::int64_t i = 0; i < tensor.elements(); ++i) made.mean += tensor.at(i) / n;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    made.variance += std::pow(tensor.at(i) - made.mean, 2) / n;
    made.largest = std::max(made.largest, std::abs(tensor.at(i)));
  }
  return made;
}

Tensor drawn(const nn::init::Initializer& initializer, DType dtype = DType::f64) {
  return initializer({Shape{100, 500}, dtype}, fans, 7);
}

}  // namespace

TEST_CASE("initializers have the variances of their papers") {
  struct Row {
    nn::init::Initializer initializer;
    double variance;
    double most;  ///< bound of a uniform distribution; 0: normal
  };
  const double xavier = 2.0 / 150, kaiming = 2.0 / 100;
  const Row rows[] = {
      {nn::init::xavier_uniform(), xavier, std::sqrt(3 * xavier)},
      {nn::init::xavier_normal(), xavier, 0},
      {nn::init::xavier_normal(2), 4 * xavier, 0},
      {nn::init::kaiming_uniform(), kaiming, std::sqrt(3 * kaiming)},
      {nn::init::kaiming_normal(), kaiming, 0},
      {nn::init::kaiming_normal(1, nn::init::Fan::out), 1.0 / 50, 0},
      {nn::init::fan_in_uniform(), 1.0 / 300, 0.1},
      {nn::init::uniform(-2, 2), 4.0 / 3, 2},
      {nn::init::normal(3), 9, 0},
      // The variance of a normal distribution cut at two deviations.
      {nn::init::truncated_normal(1), 0.7737, 2},
  };
  for (const Row& row : rows) {
    const Moments found = moments_of(drawn(row.initializer));
    CHECK_THAT(found.mean, WithinAbs(0, 4 * std::sqrt(row.variance / 50'000)));
    CHECK_THAT(found.variance, WithinRel(row.variance, 0.03));
    if (row.most > 0) CHECK(found.largest <= row.most);
    if (row.most > 0) CHECK(found.largest > 0.99 * row.most);
  }
}

TEST_CASE("initializers give the same bits for the same seed") {
  for (const nn::init::Initializer& initializer :
       {nn::init::xavier_uniform(), nn::init::truncated_normal(0.02), nn::init::orthogonal()}) {
    const ValueType type{Shape{6, 4}, DType::f32};
    CHECK(same_bits(initializer(type, fans, 3), initializer(type, fans, 3)));
    CHECK_FALSE(same_bits(initializer(type, fans, 3), initializer(type, fans, 4)));
  }
  // Values that must never change, on any machine.
  const Tensor made = nn::init::xavier_uniform()({Shape{3}, DType::f32}, {2, 4}, 1);
  CHECK(same_bits(made, Tensor::uniform({3}, 1, -1, 1)));
}

TEST_CASE("orthogonal matrices have orthonormal rows or columns") {
  for (const Shape& shape : {Shape{5, 12}, Shape{12, 5}, Shape{4, 3, 2}, Shape{7, 7}}) {
    const Tensor made = nn::init::orthogonal(2)({shape, DType::f64}, fans, 5);
    const auto rows = static_cast<std::size_t>(shape[0]);
    const std::size_t columns = static_cast<std::size_t>(shape.elements()) / rows;
    const bool is_wide = columns >= rows;
    const std::size_t n = is_wide ? rows : columns;
    const auto m = made.data<double>();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        double product = 0;
        for (std::size_t k = 0; k < (is_wide ? columns : rows); ++k) {
          product += is_wide ? m[i * columns + k] * m[j * columns + k]
                             : m[k * columns + i] * m[k * columns + j];
        }
        CHECK_THAT(product, WithinAbs(i == j ? 4 : 0, 1e-12));
      }
    }
  }
  CHECK_THROWS_AS(nn::init::orthogonal()({Shape{3}, DType::f32}, fans, 1), ShapeError);
}

TEST_CASE("initializers keep the dtype, take empty shapes and refuse settings") {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    CHECK(drawn(nn::init::kaiming_normal(), dtype).dtype() == dtype);
    CHECK(nn::init::truncated_normal(1)({Shape{0, 3}, dtype}, fans, 1).elements() == 0);
    CHECK(nn::init::orthogonal()({Shape{0, 3}, dtype}, fans, 1).elements() == 0);
  }
  CHECK(nn::init::constant(0.5)({Shape{2}, DType::f32}, fans, 1).at(1) == 0.5);
  CHECK_THROWS_WITH(nn::init::uniform(1, 1), Contains("low < high"));
  CHECK_THROWS_WITH(nn::init::normal(-1), Contains("give 0 or more"));
  CHECK_THROWS_WITH(nn::init::xavier_normal(-1), Contains("gain"));
  CHECK_THROWS_WITH(nn::init::truncated_normal(1, 0, 0.1), Contains("0.5 or more"));
  const auto unnamed = static_cast<nn::init::Fan>(77);
  CHECK_THROWS_WITH(nn::init::kaiming_normal(1, unnamed), Contains("the fan is 77"));
  CHECK_THROWS_WITH(nn::init::kaiming_uniform(1, unnamed), Contains("the fan is 77"));
  CHECK(nn::init::truncated_normal(0, 0.1)({Shape{2}, DType::f32}, fans, 1).at(0) == 0.1F);
}

}  // namespace palimpsest::initializers_test
