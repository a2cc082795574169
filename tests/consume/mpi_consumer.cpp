// A program of an external user, in as many processes as there are: the derivative of x² at 3.
#include <palimpsest.h>
#include <palimpsest/strategy/mpi/distributed_execution.h>

using namespace palimpsest;

int main() {
  RankWorld world;
  DistributedExecution execution(world, {}, {.reduction = LossReduction::sum});
  const Tensor x = Tensor::scalar(3);
  const Tensor ones = Tensor::ones({world.size()});
  const Gradients gradients =
      execution.gradients([](Tape&, std::span<const Var> p,
                             std::span<const Var> batch) { return sum(p[0] * p[0] * batch[0]); },
                          {&x, 1}, {&ones, 1});
  const double slope = gradients.entries()[0].gradient.item();
  return slope == 6.0 * world.size() ? 0 : 1;
}
