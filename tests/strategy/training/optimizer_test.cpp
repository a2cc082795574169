#include "strategy/training/optimizer.h"

#include <cmath>
#include <functional>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::optimizer_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

/// `steps` steps on ½·x² from x = 2, whose gradient is x.
double after_steps(Optimizer& optimizer, int steps, DType dtype = DType::f64) {
  const Tensor x = Tensor::scalar(2, dtype);
  for (int i = 0; i < steps; ++i) {
    Tape tape;
    const Var p = tape.parameter(x);
    optimizer.step(backward(p * p * 0.5));
  }
  return x.item();
}

TEST_CASE("SGD takes the steps its formula gives") {
  CHECK_THAT(after_steps(*sgd({.learning_rate = 0.1}), 1), WithinAbs(1.8, 1e-15));
  // v: 2, then 0.9·2 + 1.8 = 3.6; p: 1.8, then 1.44.
  CHECK_THAT(after_steps(*sgd({.learning_rate = 0.1, .momentum = 0.9}), 2), WithinAbs(1.44, 1e-15));
  CHECK_THAT(after_steps(*sgd({.learning_rate = 0.1, .weight_decay = 0.5}), 1),
             WithinAbs(2 - 0.1 * 3, 1e-15));
}

double adam_by_formula(int steps, double decay, bool decoupled) {
  double p = 2, m = 0, v = 0;
  for (int t = 1; t <= steps; ++t) {
    const double g = p + (decoupled ? 0 : decay * p);
    if (decoupled) p -= 0.1 * decay * p;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
  return p;
}

TEST_CASE("Adam and AdamW take the steps their formulas give") {
  const AdamOptions options{.learning_rate = 0.1, .weight_decay = 0.3};
  const AdamWOptions decoupled{.learning_rate = 0.1, .weight_decay = 0.3};
  CHECK_THAT(after_steps(*adam(options), 5), WithinRel(adam_by_formula(5, 0.3, false), 1e-12));
  CHECK_THAT(after_steps(*adamw(decoupled), 5), WithinRel(adam_by_formula(5, 0.3, true), 1e-12));
  CHECK_THAT(after_steps(*adamw({.learning_rate = 0.1}), 5),
             WithinRel(adam_by_formula(5, 0.01, true), 1e-12));
  CHECK_THAT(after_steps(*adam(options), 5, DType::f32),
             WithinRel(adam_by_formula(5, 0.3, false), 1e-5));
  CHECK_THAT(after_steps(*adam(options), 5, DType::bf16),
             WithinRel(adam_by_formula(5, 0.3, false), 3e-2));
}

TEST_CASE("gradients own what optimizers and accumulators need") {
  const auto from_tape = [](const Tensor& x) {
    Tape tape;
    const Var p = tape.parameter(x, "p");
    return backward(p * p * 0.5);
  };
  const auto from_program = [](const Tensor& x) {
    Runner runner(Program::gradients([&](Tape& tape) {
      const Var p = tape.parameter(x, "p");
      return p * p * 0.5;
    }));
    runner.run();
    return runner.gradients();
  };
  const auto from_execution = [](const Tensor& x) {
    Execution execution;
    const auto loss = [](Tape&, std::span<const Var> parameters, std::span<const Var>) {
      return parameters[0] * parameters[0] * 0.5;
    };
    return execution.gradients(loss, {&x, 1}, {});
  };
  using Make = std::function<Gradients(const Tensor&)>;
  for (const Make& make : {Make(from_tape), Make(from_program), Make(from_execution)}) {
    const Tensor x = Tensor::scalar(2, DType::f64);
    const Gradients gradients = make(x);  // its tape is gone
    CHECK(gradients.loss().item() == 2);
    CHECK(gradients.entries()[0].gradient.item() == 2);
    CHECK_THROWS_AS(gradients.entries()[0].parameter.value(), TapeError);
    const auto optimizer = sgd({.learning_rate = 0.1});
    optimizer->step(gradients);
    CHECK_THAT(x.item(), WithinAbs(1.8, 1e-15));
    GradientAccumulator accumulator;
    CHECK(accumulator.step(gradients));
    optimizer->step(accumulator.gradients());
    CHECK_THAT(x.item(), WithinAbs(1.6, 1e-15));
  }
}

TEST_CASE("a step updates the tensors that are bound to a program") {
  const Tensor recorded = Tensor::scalar(2, DType::f64);
  const Tensor bound = Tensor::scalar(4, DType::f64);
  const Tensor unread = Tensor::scalar(7, DType::f64);
  const Tensor bound_unread = Tensor::scalar(8, DType::f64);
  Var p, q;
  Runner runner(Program::gradients([&](Tape& tape) {
    p = tape.parameter(recorded);
    q = tape.parameter(unread);
    return p * p * 0.5;
  }));
  runner.bind(p, bound);
  runner.bind(q, bound_unread);
  runner.run();
  sgd({.learning_rate = 0.5, .weight_decay = 1})->step(runner.gradients());
  CHECK(bound.item() == 0);
  CHECK(recorded.item() == 2);
  CHECK(bound_unread.item() == 4);
  CHECK(unread.item() == 7);
}

TEST_CASE("a tensor that is recorded twice is an error that names both parameters") {
  const Tensor x = Tensor::scalar(2, DType::f64);
  Tape tape;
  const Var p = tape.parameter(x, "embedding");
  const Var q = tape.parameter(x, "head");
  const auto optimizer = sgd();
  CHECK_THROWS_WITH(
      optimizer->step(backward(p * q)),
      Contains("'embedding' and 'head' are one tensor") && Contains("record it once"));
  CHECK(x.item() == 2);
  CHECK(optimizer->steps() == 0);
}

TEST_CASE("settings out of range are errors") {
  CHECK_THROWS_WITH(sgd({.learning_rate = -1}),
                    Contains("learning rate is -1;") && Contains("give 0 or more"));
  CHECK_THROWS_WITH(sgd({.momentum = 1}), Contains("momentum is 1;") && Contains("less than 1"));
  CHECK_THROWS_WITH(adam({.beta1 = 1.5}), Contains("beta1"));
  CHECK_THROWS_WITH(adamw({.epsilon = -1}), Contains("epsilon"));
}

TEST_CASE("the learning rate can change between steps") {
  const auto optimizer = sgd({.learning_rate = 0.1});
  optimizer->set_learning_rate(0.5);
  CHECK(optimizer->learning_rate() == 0.5);
  CHECK(after_steps(*optimizer, 1) == 1);
  CHECK_THROWS_AS(optimizer->set_learning_rate(-1), ArgumentError);
  CHECK_THROWS_AS(optimizer->set_learning_rate(INFINITY), ArgumentError);
}

TEST_CASE("an optimizer stays with one model") {
  const auto optimizer = sgd({.momentum = 0.5});
  const auto step = [&](const Shape& shape, int parameters) {
    Tape tape;
    Var loss = sum(tape.parameter(Tensor::ones(shape)));
    for (int i = 1; i < parameters; ++i) loss = loss + sum(tape.parameter(Tensor::ones(shape)));
    optimizer->step(backward(loss));
  };
  step({2}, 1);
  CHECK_THROWS_WITH(step({3}, 1), Contains("f32 (2)") && Contains("f32 (3)"));
  CHECK_THROWS_WITH(step({2}, 2), Contains("2 parameters"));
  CHECK(optimizer->steps() == 1);
}

TEST_CASE("clipping scales all gradients to one norm") {
  Tape tape;
  const Var a = tape.parameter(Tensor::scalar(3, DType::f64));
  const Var b = tape.parameter(Tensor::scalar(4, DType::f64));
  const Gradients gradients = backward((a * a + b * b) * 0.5);
  CHECK(clip_by_norm(gradients, 10) == 5);
  CHECK(gradients[a].item() == 3);
  CHECK(clip_by_norm(gradients, 1) == 5);
  CHECK_THAT(gradients[a].item(), WithinAbs(0.6, 1e-15));
  CHECK_THAT(gradients[b].item(), WithinAbs(0.8, 1e-15));
  CHECK_THROWS_AS(clip_by_norm(gradients, 0), ArgumentError);
}

TEST_CASE("clip_by_norm scales an adjoint that parameters share once") {
  Tape tape;
  const Var a = tape.parameter(Tensor::scalar(3, DType::f64));
  const Var b = tape.parameter(Tensor::scalar(4, DType::f64));
  const Gradients gradients = backward((a + b) * 5.0);
  clip_by_norm(gradients, std::sqrt(2.0));
  CHECK_THAT(gradients[a].item(), WithinAbs(1, 1e-15));
  CHECK_THAT(gradients[b].item(), WithinAbs(1, 1e-15));
}

TEST_CASE("gradients are those of their own parameters") {
  Tape tape;
  const Gradients old = backward(tape.parameter(Tensor::scalar(3)) * 2.0);
  tape.clear();
  const Var other = tape.parameter(Tensor::scalar(5));
  CHECK_THROWS_AS(old[other], ArgumentError);
}

}  // namespace
}  // namespace palimpsest::optimizer_test
