// A program whose last rank ends early. The other ranks learn this in their next step and end too.
#include "palimpsest.h"
#include "strategy/mpi/distributed_execution.h"

using namespace palimpsest;

int main() {
  RankWorld world;
  const int last = world.size() - 1;
  DistributedExecution execution(world);
  const Tensor x = Tensor::ones({4});
  const Tensor batch = Tensor::ones({world.size(), 4});
  for (int step = 0; step < 4; ++step) {
    if (step == 2 && world.rank() == last) return 0;
    try {
      execution.gradients(
          [](Tape&, std::span<const Var> p, std::span<const Var> b) { return sum(p[0] * b[0]); },
          {&x, 1}, {&batch, 1});
    } catch (const RankError& error) {
      return step == 2 && error.rank() == last ? 0 : 1;
    }
  }
  return 1;
}
