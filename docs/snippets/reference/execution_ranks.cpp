// Examples of docs/reference/execution.md for several processes. They run as a world of one rank.
#include <palimpsest/strategy/mpi/distributed_execution.h>

#include "docs/snippets/reference/example.h"

namespace reference {
namespace {

/// The world that a program makes once.
RankWorld& world() {
  static RankWorld of_program;
  return of_program;
}

/// The mean squared error of a linear model.
Var error_of(Tape&, std::span<const Var> parameters, std::span<const Var> batch) {
  return mse(matmul(batch[0], parameters[0]), batch[1]);
}

const std::vector<Tensor> weights{Tensor::ones({2, 1})};
const std::vector<Tensor> batch{Tensor::ones({8, 2}), Tensor::zeros({8, 1})};

}  // namespace

EXAMPLE(RankWorld, RankWorld::rank, RankWorld::size, RankWorld::ranks_here, RankWorld::together) {
  // `mpirun -n 4` makes four ranks; without it there is one.
  print(world().rank(), world().size(), world().ranks_here());  // → 0 1 1
  // Where this fails on one rank, it throws on all of them.
  world().together([] { save_safetensors("start.safetensors", {{"w", weights[0]}}); });
}

EXAMPLE(RankError, RankError::rank, RankWorld::first_failed) {
  try {
    world().together([] { load_safetensors("missing.safetensors"); });
  } catch (const RankError& error) {
    print("rank", error.rank(), "failed");
  } catch (const FileError&) {
    // The rank that fails throws its own error.
    print("no such file");  // → no such file
  }
  print(world().first_failed().value());  // → 0
}

EXAMPLE(DistributedExecution, DistributedExecution::broadcast, DistributedExecution::gradients,
        DistributedExecution::verify, DistributedExecution::reports, DistributedOptions,
        RankReport) {
  DistributedExecution execution(world(), {.run = {.memory_budget = 1_MiB}});
  execution.broadcast(weights);  // those of rank 0
  const Gradients gradients = execution.gradients(error_of, weights, batch);
  print(gradients.loss(), gradients.entries()[0].gradient);  // → 4 [[4], [4]]
  execution.verify(weights);                                 // throws `RankError` if they differ
  print(execution.reports()[0].examples);                    // → 8
}

EXAMPLE(DistributedExecution::gradients_of_shard) {
  DistributedExecution execution(world());
  // Each rank reads examples of its own.
  print(execution.gradients_of_shard(error_of, weights, batch).loss());  // → 4
}

EXAMPLE(DistributedExecution::state, DistributedExecution::check_state,
        DistributedExecution::load_state) {
  DistributedExecution execution(world()), next(world());
  execution.gradients(error_of, weights, batch);
  next.check_state(execution.state());  // throws what `load_state` would
  next.load_state(execution.state());
  print(next.state().at("steps"));  // → 1
}

}  // namespace reference
