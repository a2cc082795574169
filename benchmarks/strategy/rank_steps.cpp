// Takes steps in as many processes as `mpirun` starts, after warm-up steps in which planning
// settles. The first process prints three numbers: the seconds of the steps, the largest peak of
// all ranks, and 1 if all peaks were within the predicted ones, else 0.
//
//   mpirun -n 2 rank_steps shards|stages WIDTH EXAMPLES STEPS
#include "strategy/mpi/distributed_execution.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "benchmarks/strategy/dense.h"
#include "benchmarks/turns.h"

using namespace palimpsest;
using namespace palimpsest::benchmarks;

int main(int argc, char** argv) {
  const std::string_view kind = argc == 5 ? argv[1] : "";
  if (kind != "shards" && kind != "stages") {
    std::cerr << "usage: rank_steps shards|stages WIDTH EXAMPLES STEPS\n";
    return 2;
  }
  ExecutionStrategy strategy;
  if (kind == "stages") strategy = {.accumulation = 8, .parallelism = ParallelMode::pipeline};
  const Workload layers =
      dense(8, std::atoll(argv[2]), std::atoll(argv[3]), [](const Var& x) { return gelu(x); });
  RankWorld world;
  DistributedExecution execution(world, strategy);
  const auto steps = [&](std::int64_t count) {
    const double start = now();
    for (std::int64_t i = 0; i < count; ++i) {
      execution.gradients(layers.model, layers.parameters, layers.batch);
    }
    return now() - start;
  };
  steps(4);
  const double seconds = steps(std::atoll(argv[4]));
  if (world.rank() != 0) return 0;
  Bytes peak = 0;
  bool is_within = true;
  for (const RankReport& report : execution.reports()) {
    peak = std::max(peak, report.measured_peak);
    is_within = is_within && report.measured_peak <= report.predicted_peak;
  }
  std::cout << seconds << ' ' << peak << ' ' << is_within << std::endl;
}
