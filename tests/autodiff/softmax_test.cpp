#include "autodiff/operations/normalization.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/tape.h"
#include "tests/catch.h"

namespace palimpsest::softmax_test {

// Lines of lengths around multiples of registers and blocks, contiguous and in columns.
TEMPLATE_TEST_CASE("softmax: lines of any length are those of f64", "[elementwise]", float,
                   double) {
  const double allowed = sizeof(TestType) == 4 ? 1e-6 : 1e-14;
  for (const std::int64_t n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 65, 511, 513, 1100}) {
    for (const std::int64_t columns : {1, 3, 16, 17, 65}) {
      const Tensor x = Tensor::normal({n, columns}, 5, 0, 3, dtype_of<TestType>());
      Tape tape;
      const Tensor y = softmax(tape.constant(x), 0).value();
      const Tensor log_y = log_softmax(tape.constant(x), 0).value();
      double worst = 0;
      double worst_log = 0;
      for (std::int64_t c = 0; c < columns; ++c) {
        double total = 0;
        for (std::int64_t i = 0; i < n; ++i) total += std::exp(x.at(i * columns + c));
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t at = i * columns + c;
          worst = std::max(worst, std::abs(y.at(at) - std::exp(x.at(at)) / total));
          worst_log = std::max(worst_log, std::abs(log_y.at(at) - (x.at(at) - std::log(total))));
        }
      }
      CAPTURE(n, columns);
      CHECK(worst <= allowed);
      CHECK(worst_log <= 10 * allowed);
    }
  }
}

TEMPLATE_TEST_CASE("softmax: what is far below the largest is 0", "[elementwise]", float, double) {
  const auto infinity = std::numeric_limits<TestType>::infinity();
  const Tensor x = Tensor::from({TestType(1), TestType(-900), -infinity, TestType(1)}, {4, 1});
  Tape tape;
  for (const Shape& shape : {Shape{1, 4}, Shape{4, 1}}) {
    const int axis = shape[0] == 1 ? 1 : 0;
    const Tensor y = softmax(tape.constant(x.reshape(shape)), axis).value();
    CHECK(y.at(0) == 0.5);
    CHECK(y.at(1) == 0);
    CHECK(y.at(2) == 0);
    CHECK(y.at(3) == 0.5);
  }
  // Two columns, which the kernel processes together.
  const Tensor pair = Tensor::from({TestType(1), TestType(-900), -infinity, TestType(2)}, {2, 2});
  const Tensor y = softmax(tape.constant(pair), 0).value();
  CHECK(y.at(0) == 1);
  CHECK(y.at(1) == 0);
  CHECK(y.at(2) == 0);
  CHECK(y.at(3) == 1);
}

}  // namespace palimpsest::softmax_test
