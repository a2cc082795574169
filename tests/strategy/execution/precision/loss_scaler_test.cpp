#include "strategy/training/loss_scaler.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <cmath>

#include "palimpsest.h"
#include "strategy/evaluators/engine.h"
#include "tests/catch.h"

namespace palimpsest::loss_scaler_test {
namespace {

using Catch::Matchers::Contains;

/// The gradients of scale·factor·Σ x².
Gradients gradients_of(Tape& tape, LossScaler& scaler, const Tensor& x, double factor = 1) {
  return backward(scaler.scale(sum(square(tape.parameter(x))) * factor));
}

TEST_CASE("gradients are unscaled exactly, and so is the loss") {
  const Tensor x = Tensor::normal({1000}, 1);
  Tape plain, scaled;
  const Gradients exact = backward(sum(square(plain.parameter(x))));
  LossScaler scaler;
  const Gradients gradients = gradients_of(scaled, scaler, x);
  CHECK(gradients.loss().item() == 65536 * exact.loss().item());
  CHECK(scaler.unscale(gradients));
  CHECK(same_bits(gradients.entries()[0].gradient, exact.entries()[0].gradient));
  CHECK(scaler.loss() == exact.loss().item());
  CHECK(scaler.steps() == 1);
  CHECK(scaler.skipped() == 0);
}

TEST_CASE("a gradient that two parameters share is unscaled once") {
  Tape tape;
  const Var a = tape.parameter(Tensor::ones({4}));
  const Var b = tape.parameter(Tensor::ones({4}));
  LossScaler scaler;
  const Gradients gradients = backward(scaler.scale(sum(a + b)));
  CHECK(scaler.unscale(gradients));
  CHECK(gradients[a].at(0) == 1);
  CHECK(gradients[b].at(3) == 1);
}

TEST_CASE("gradients are unscaled with the same bits at any number of threads") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const Tensor x = Tensor::normal({300'000}, 1);
  std::vector<Tensor> results;
  for (const int threads : {1, 2, 8}) {
    Tape tape;
    LossScaler scaler;
    const Gradients gradients = gradients_of(tape, scaler, x, 0.1);
    tbb::task_arena(threads).execute([&] { CHECK(scaler.unscale(gradients)); });
    results.push_back(gradients.entries()[0].gradient);
  }
  CHECK(same_bits(results[0], results[1]));
  CHECK(same_bits(results[0], results[2]));
}

TEST_CASE("the scale halves after an overflow and doubles after steps without one") {
  LossScaler scaler({.scale = 8, .interval = 3, .smallest = 2, .largest = 16});
  const auto step = [&](double factor) {
    Tape tape;
    return scaler.unscale(gradients_of(tape, scaler, Tensor::ones({3}), factor));
  };
  CHECK_FALSE(step(INFINITY));
  CHECK(scaler.scale() == 4);
  CHECK(step(1));
  CHECK(step(1));
  CHECK(scaler.scale() == 4);
  CHECK_FALSE(step(NAN));  // the count restarts
  CHECK(scaler.scale() == 2);
  CHECK_FALSE(step(NAN));
  CHECK(scaler.scale() == 2);  // the minimum
  for (int i = 0; i < 12; ++i) CHECK(step(1));
  CHECK(scaler.scale() == 16);  // the maximum
  CHECK(scaler.growths() == 3);
  CHECK(scaler.skipped() == 3);
  CHECK(scaler.steps() == 17);
}

TEST_CASE("a change of scale needs no other plan") {
  const auto evaluator = lazy();
  LossScaler scaler({.interval = 1});
  Tape tape(evaluator);
  for (int i = 0; i < 3; ++i) {
    tape.clear();
    CHECK(scaler.unscale(gradients_of(tape, scaler, Tensor::ones({3}))));
  }
  CHECK(evaluator->plans_made() == 1);
}

TEST_CASE("losses of 16 bits are scaled in f32") {
  Tape tape;
  const Var loss = tape.parameter(Tensor::scalar(3, DType::f16));
  LossScaler scaler;
  const Gradients gradients = backward(scaler.scale(loss));
  CHECK(gradients.loss().item() == 3 * 65536.0);
  CHECK(gradients.loss().dtype() == DType::f32);
}

TEST_CASE("settings of a scaler that make no sense are errors") {
  CHECK_THROWS_WITH(LossScaler({.scale = 1000}), Contains("power of two"));
  CHECK_THROWS_WITH(LossScaler({.scale = -2}), Contains("power of two"));
  CHECK_THROWS_WITH(LossScaler({.scale = NAN}), Contains("power of two"));
  CHECK_THROWS_WITH(LossScaler({.growth = 0.5}), Contains("growth is 0.5"));
  CHECK_THROWS_WITH(LossScaler({.backoff = 1}), Contains("backoff is 1;"));
  CHECK_THROWS_WITH(LossScaler({.interval = 0}), Contains("interval is 0; give"));
  CHECK_THROWS_WITH(LossScaler({.scale = 0.5}), Contains("scale 0.5") && Contains("bounds"));
  CHECK_THROWS_WITH(LossScaler({.largest = 1024}), Contains("bounds"));
  CHECK_THROWS_AS(LossScaler({.growth = 3}), ArgumentError);
  Tape tape;
  LossScaler scaler;
  const Gradients gradients = backward(sum(tape.parameter(Tensor::ones({2}))));
  CHECK_THROWS_WITH(scaler.unscale(gradients), Contains("scaler.scale(loss)"));
  CHECK_THROWS_AS(scaler.scale(tape.constant(Tensor::arange(1))), DTypeError);
}

}  // namespace
}  // namespace palimpsest::loss_scaler_test
