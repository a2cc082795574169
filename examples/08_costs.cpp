// Where planners get the costs of operations from: a fixed machine model, this machine as measured,
// or the times of a run.
#include <palimpsest.h>

#include <iostream>
#include <memory>

using namespace palimpsest;

namespace {

/// Layers of matrix products, which are expensive to recompute, and activations, which are cheap.
Var record_loss(Tape& tape) {
  const Var weight = tape.parameter(Tensor::normal({128, 128}, 1, 0, 0.1), "weight");
  Var x = tape.constant(Tensor::uniform({256, 128}, 2), "input");
  for (int layer = 0; layer < 20; ++layer) x = tanh(matmul(x, weight));
  return mean(square(x));
}

Gradients step(const RunOptions& options) {
  Tape tape;
  return backward(record_loss(tape), options);
}

}  // namespace

int main() {
  const Gradients first = step({.profile = true});
  const Bytes budget = first.report().keep_all_peak / 2;

  const Gradients usual = step({.memory_budget = budget});
  const Gradients measured = step({.memory_budget = budget, .machine = measured_machine()});

  const auto costs = std::make_shared<const Profile>(first.report());
  const Gradients timed = step({.memory_budget = budget, .costs = costs});

  for (const Gradients* gradients : {&usual, &measured, &timed}) {
    std::cout << gradients->report().summary() << '\n';
    // Different costs may lead to a different plan, but never to different gradients.
    const Tensor& gradient = gradients->entries()[0].gradient;
    if (!same_bits(gradient, first.entries()[0].gradient)) return 1;
  }
}
