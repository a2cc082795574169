// A physics-informed network solves Δu = −2π² sin πx sin πy on a square, with u = 0 on its rim.
#include <palimpsest.h>
#include <palimpsest/nn/nn.h>
#include <palimpsest/strategy/training/training.h>

#include <cstdio>
#include <numbers>

#include "examples/compared/support.h"

using namespace palimpsest;

struct Solution {
  nn::Parameters p;
  nn::Linear first{p / "first", 2, 32};
  nn::Linear second{p / "second", 32, 32};
  nn::Linear last{p / "last", 32, 1};

  Var operator()(const Var& x, const Var& y) const {
    const Var features = tanh(second(tanh(first(concat({x, y}, 1)))));
    return (1.0 - square(x)) * (1.0 - square(y)) * last(features);
  }
};

int main() {
  nn::Parameters parameters(0, DType::f64);
  const Solution solution{parameters};
  same_parameters(parameters);
  Runner runner(Program::gradients([&](Tape& tape) {
    constexpr double pi = std::numbers::pi;
    const Var x = tape.constant(numbers({256, 1}, "x", DType::f64));
    const Var y = tape.constant(numbers({256, 1}, "y", DType::f64));
    const Var u = solution(x, y);
    const Var laplacian = gradient(gradient(u, x), x) + gradient(gradient(u, y), y);
    const Var exact = sin(pi * x) * sin(pi * y);
    const Var loss = mean(square(laplacian + 2 * pi * pi * exact));
    return LossAndOutputs(loss, {max(abs(u - exact))});
  }));

  const auto optimizer = adam();
  const RateSchedule rate = cosine_decay({.rate = 0.01, .steps = 400});
  for (int step = 0; step < 400; ++step) {
    runner.run();
    const Gradients gradients = runner.gradients();
    optimizer->set_learning_rate(rate(step));
    optimizer->step(gradients);
    if (step % 50 == 0) {
      std::printf("step %d loss %.12g error %.12g\n", step, gradients.loss().item(),
                  gradients.outputs()[0].item());
    }
  }
}
