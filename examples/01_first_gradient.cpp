#include <palimpsest.h>

#include <iostream>

using namespace palimpsest;

int main() {
  const Tensor start = Tensor::normal({256, 256}, /*seed=*/1, 0.0, 0.06);
  const Tensor input = Tensor::uniform({512, 256}, /*seed=*/2);

  Tape tape;
  const Var weight = tape.parameter(start, "weight");
  Var state = tape.constant(input, "input");
  for (int step = 0; step < 100; ++step) state = tanh(matmul(state, weight));
  const Var loss = sum(state * state);

  // Nothing has been computed yet: the budget covers the forward and the backward part.
  const Gradients gradients = backward(loss, {.memory_budget = 12_MiB});

  std::cout << "loss " << gradients.loss().item() << '\n'
            << "gradient " << gradients[weight].at(0) << " ...\n"
            << gradients.report();
}
