// The statements of docs/differences-from-pytorch.md about this library, in the order of the
// document. PyTorch's side was tried with version 2.15.
#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/sequence.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/tensor_operators.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::differences_from_pytorch_test {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

Tensor f64(std::vector<double> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return Tensor::from(std::move(values), {size});
}

/// Equal numbers, or both NaN.
void check_equal(const Tensor& a, const std::vector<double>& b) {
  REQUIRE(a.elements() == static_cast<std::int64_t>(b.size()));
  for (std::size_t i = 0; i < b.size(); ++i) {
    INFO("element " << i << ": " << a.at(static_cast<std::int64_t>(i)) << " for " << b[i]);
    const double x = a.at(static_cast<std::int64_t>(i));
    CHECK((x == b[i] || (std::isnan(x) && std::isnan(b[i]))));
  }
}

/// The gradient at x of the sum of f's elements.
template <class F>
Tensor slope(F f, const std::vector<double>& x) {
  Tape tape;
  const Var v = tape.parameter(f64(x));
  return gradient(f(v), v).value();
}

TEST_CASE("differences: dtypes") {
  Tape tape;
  const Var i = tape.constant(Tensor::from<std::int64_t>({0, 1, 5}, {3}));
  CHECK((i + 1.0).dtype() == DType::i64);
  CHECK((i + 0.5).dtype() == DType::f32);
  check_equal((i / 2).value(), {0, 0, 2});
  check_equal((i / 0).value(), {0, 0, 0});
  const Var narrow = cast(i, DType::i32);
  CHECK(sum(narrow).dtype() == DType::i32);
  CHECK(prod(narrow).dtype() == DType::i32);
  CHECK(cumsum(narrow, 0).dtype() == DType::i32);
  const Var bytes = tape.constant(Tensor::from<std::uint8_t>({0, 1, 1}, {3}));
  CHECK_THROWS_AS(bytes + 300, ArgumentError);
  check_equal(i[bytes].value(), {0, 1, 1});
  CHECK(where(i > 0, 1, 0).dtype() == DType::f32);
  const Var wide = tape.constant(Tensor::scalar(1.0, DType::f64));
  CHECK((tape.constant(Tensor::vector({1, 2})) + wide).dtype() == DType::f64);
  CHECK((narrow + tape.constant(Tensor::scalar(1.0, DType::i64))).dtype() == DType::i64);
  const Var truth = i > 0;
  CHECK_THROWS_AS(truth + truth, DTypeError);
  check_equal((i - truth).value(), {0, 0, 4});
  CHECK_THROWS_AS(exp(i), DTypeError);
  CHECK(one_hot(i, 6).dtype() == DType::f32);
  check_equal(cast(tape.constant(f64({nan, 1e20, -1e20})), DType::i32).value(),
              {0, 0x1p31 - 1, -0x1p31});
}

TEST_CASE("differences: derivatives where there is no single one") {
  check_equal(slope([](const Var& x) { return norm(x, infinity); }, {2, -2, 1}), {1, 0, 0});
  check_equal(slope([](const Var& x) { return max(x); }, {2, 2, 1}), {1, 0, 0});
  check_equal(slope([](const Var& x) { return max(x); }, {1, nan, nan}), {0, 1, 0});
  check_equal(slope([](const Var& x) { return norm(x, 1); }, {1, nan}), {1, nan});
  check_equal(slope([](const Var& x) { return gradient(norm(x), x); }, {0, 0}), {0, 0});
  check_equal(slope([](const Var& x) { return prod(x); }, {2, infinity, 3}),
              {infinity, 6, infinity});
  check_equal(slope([](const Var& x) { return maximum(x, flip(x)); }, {nan, 1}), {1, 1});
  check_equal(slope([](const Var& x) { return maximum(x, nan); }, {1}), {0.5});
  check_equal(slope([](const Var& x) { return minimum(x, nan); }, {1}), {0.5});
  check_equal(slope([](const Var& x) { return relu(x); }, {nan, 0}), {0, 0});
  check_equal(slope([](const Var& x) { return elu(x); }, {nan}), {nan});
  check_equal(slope([](const Var& x) { return gradient(elu(x, 1.5), x); }, {0}), {1.5});
  for (const auto f :
       {+[](const Var& x) { return gelu(x); }, +[](const Var& x) { return gelu_tanh(x); },
        +[](const Var& x) { return mish(x); }}) {
    check_equal(slope(f, {infinity, -infinity}), {1, 0});
  }
  check_equal(slope([](const Var& x) { return acosh(x); }, {-2}), {nan});
  check_equal(slope([](const Var& x) { return pow(x, 0.5); }, {-infinity, -0.0}), {0, infinity});
  check_equal(slope([](const Var& x) { return clamp(x, -1, 1); }, {-1, 1, 2, nan}), {1, 1, 0, 1});
  check_equal(slope([](const Var& x) { return atan2(x, x); }, {0}), {nan});
  check_equal(slope(
                  [](const Var& x) {
                    const Var y = huber(x, full_like(x, 0), 1, Reduction::sum);
                    return gradient(y, x);
                  },
                  {1, -1, 0.5, 2, nan}),
              {1, 1, 1, 0, 1});
  check_equal(
      slope([](const Var& x) { return det(reshape(x, {3, 3})); }, {2, 0, 0, 0, 0, 0, 0, 0, 3}),
      {0, 0, 0, 0, 6, 0, 0, 0, 0});
  const auto factor = [](const Var& x) { return cholesky(reshape(x, {2, 2})); };
  CHECK(slope(factor, {2, 0.5, 0.5, 2}).at(1) == 0);
  CHECK_THAT(slope(factor, {2, 0.5, 0.5, 2}).at(2), WithinRel(2 * 0.262266297675746, 1e-12));
  const auto least = [](const Var& x) { return slice(eigh(reshape(x, {2, 2})).values, 0, {0, 1}); };
  CHECK(slope(least, {2, 0.5, 0.5, 2}).at(1) == 0);
  CHECK_THAT(slope(least, {2, 0.5, 0.5, 2}).at(2), WithinRel(-1, 1e-12));
  check_equal(slope([](const Var& x) { return cumprod(x, 0); }, {2, nan, 3}), {nan, 8, nan});
  check_equal(slope([](const Var& x) { return logcumsumexp(x, 0); }, {-infinity, 1, infinity}),
              {0, 1, 1});
  check_equal(slope([](const Var& x) { return logsumexp(x); }, {-infinity, -infinity}), {0, 0});
  check_equal(slope([](const Var& x) { return quantile(x, 0.5); }, {1, 1, 1}), {0, 1, 0});
  check_equal(slope([](const Var& x) { return unique(x).values; }, {1, 2, 1}), {1, 1, 0});
  Tape tape;
  const Var x = tape.parameter(f64({1, 2}));
  const Var twice = tape.constant(Tensor::from<std::int64_t>({1, 1}, {2}));
  const Var source = tape.parameter(f64({3, 4}));
  for (const Var& y : {scatter(x, 0, twice, source), index_copy(x, 0, twice, source),
                       index_put(x, {twice}, source)}) {
    check_equal(y.value(), {1, 4});
    check_equal(gradient(y, source).value(), {0, 1});
  }
}

TEST_CASE("differences: values") {
  Tape tape;
  check_equal(sign(tape.constant(f64({nan}))).value(), {nan});
  CHECK(std::signbit(sign(tape.constant(f64({-0.0}))).value().at(0)));
  check_equal(pow(tape.constant(f64({-infinity, -0.0})), 0.5).value(), {infinity, 0});
  const Var least = tape.constant(f64({-infinity}));
  check_equal(concat({gelu(least), gelu_tanh(least), silu(least), mish(least)}, 0).value(),
              {0, 0, 0, 0});
  const Var far = tape.constant(f64({-infinity, 1e300}));
  check_equal(bce_with_logits(far, tape.constant(f64({1, 1e-300})), Reduction::none).value(),
              {infinity, 1e300});
  const Var spoiled = tape.constant(Tensor::from({1.0, nan}, {1, 1, 2}));
  CHECK(upsample(spoiled, 2, {Interpolation::linear}).value().at(0) == 1);
  const Var line = tape.constant(Tensor::arange(14).to(DType::f32).reshape({1, 1, 14}));
  CHECK(resize(line, 46).value().at(23) == 7);
  CHECK(slope([](const Var& x) { return softplus(x); }, {25}).at(0) < 1);
  const Tensor r = qr(tape.constant(Tensor::from({1.0, 2.0, 3.0, 4.0}, {2, 2}))).r.value();
  CHECK_THAT(r.at(0), WithinAbs(std::sqrt(10), 1e-12));
  {
    Tape tape;
    const Var x = tape.constant(f64({1, 2, 1}));
    CHECK(argsort(x).value().at(0) == 0);
    CHECK(argsort(x, 0, true).value().at(1) == 0);
    const Var sorted = tape.constant(f64({1, nan, nan}));
    const Var missing = tape.constant(f64({nan}));
    CHECK(searchsorted(sorted, missing).item() == 1);
    CHECK(searchsorted(sorted, missing, true).item() == 3);
  }
}

TEST_CASE("differences: defaults and conventions") {
  Tape tape;
  const auto causal = [&](std::int64_t queries, std::vector<float> values) {
    const auto keys = static_cast<std::int64_t>(values.size());
    const Var q = tape.constant(Tensor::ones({1, queries, 1}));
    const Var k = tape.constant(Tensor::zeros({1, keys, 1}));
    const Var v = tape.constant(Tensor::from(std::move(values), {1, keys, 1}));
    return scaled_dot_product_attention(q, k, v, {.causal = true}).value();
  };
  const Tensor two = causal(2, {1, 2, 4});
  CHECK_THAT(two.at(0), WithinRel(1.5, 1e-6));
  CHECK_THAT(two.at(1), WithinRel(7.0 / 3, 1e-6));
  check_equal(causal(3, {1, 2}), {0, 1, 1.5});

  const Var logits = tape.constant(Tensor::zeros({2, 3, 5}));
  const Var classes = tape.constant(Tensor::zeros({2, 3}, DType::i64));
  CHECK_THAT(cross_entropy(logits, classes).item(), WithinRel(std::log(5), 1e-6));
  CHECK_THROWS_AS(cross_entropy(logits, classes - 100).value(), ArgumentError);

  const Var small = tape.constant(f64({1e-4, 1e-4}));
  CHECK_THAT(rms_norm(small).value().at(0), WithinRel(1e-4 / std::sqrt(1e-8 + 1e-6), 1e-12));
  const BatchNorm batch = batch_norm(tape.constant(Tensor::from({0.0, 2.0}, {2, 1})));
  CHECK(batch.variance.item() == 1);
  CHECK(batch_norm(tape.constant(Tensor::from({3.0}, {1, 1}))).y.item() == 0);

  const Var x = tape.parameter(f64({1, 2}));
  check_equal(gradient(x * x, x).value(), {2, 4});
  check_equal(gradient(sum(small), x).value(), {0, 0});
  CHECK(x == x);
  Var sum_of_both = x;
  sum_of_both += x;
  check_equal(sum_of_both.value(), {2, 4});
  check_equal(x.value(), {1, 2});
  const Tensor rows = Tensor::arange(6, DType::f64).reshape({2, 3});
  Tensor changed = rows[0];
  changed += 10;
  check_equal(rows[0], {0, 1, 2});
  const Tensor two_places = Tensor::arange(2);
  const Var cube = tape.constant(Tensor::zeros({3, 4, 5}));
  CHECK(cube[{0, Slice{}, two_places}].shape() == Shape{4, 2});
  CHECK_THROWS_AS((cube[{two_places, two_places}]), ArgumentError);
  check_equal(repeat(x, 2, 0).value(), {1, 1, 2, 2});
  check_equal(repeat_interleave(x, 2, 0).value(), {1, 1, 2, 2});
  check_equal(tile(x, {2}).value(), {1, 2, 1, 2});
  check_equal(index_add(x, 0, tape.constant(Tensor::from<std::int64_t>({2, 2}, {2})), 4).value(),
              {0, 0, 3, 0});
}

TEST_CASE("differences: what is refused") {
  Tape tape;
  const Var x = tape.constant(f64({1, 2, 3}));
  const Var empty = tape.constant(Tensor::zeros({0}));
  CHECK_THROWS_AS(mean(empty), ShapeError);
  CHECK_THROWS_AS(variance(slice(x, 0, {0, 1})), ArgumentError);
  CHECK_THROWS_AS(any(x), DTypeError);
  CHECK_THROWS_AS(pad(x, {{-1, 1}}), ArgumentError);
  CHECK_THROWS_AS(norm(x, 0.5), ArgumentError);
  const Var square = reshape(tape.constant(f64({1, 2, 3, 4})), {2, 2});
  const Var index = tape.constant(Tensor::from<std::int64_t>({1}, {1, 1}));
  CHECK_THROWS_AS(gather(square, 1, index), ShapeError);
  CHECK_THROWS_AS(leaky_relu(x, -0.1), ArgumentError);
  {
    Tape tape;
    const Var x = tape.constant(f64({1, 2}));
    const Var last = tape.constant(Tensor::from<std::int64_t>({-1}, {1}));
    CHECK_THROWS_AS(palimpsest::index(x, {last}).value(), ArgumentError);
    CHECK_THROWS_AS(index_put(x, {last}, tape.constant(f64({3}))).value(), ArgumentError);
  }
}

}  // namespace
}  // namespace palimpsest::differences_from_pytorch_test
