#include "strategy/mpi/rank_link.h"

#include <algorithm>

#include "tests/failing_memory.h"
#include "tests/strategy/mpi/model.h"
#include "tests/strategy/mpi/ranks.h"

namespace palimpsest::memory_test {
namespace {

/// Lets each allocation of the last rank in the step after `steps` others fail in turn. Checks that
/// either all ranks fail or none.
void check_allocations(const ExecutionStrategy& strategy, const DistributedOptions& options,
                       int steps, std::int64_t stride = 20) {
  const int rank = world().size() - 1;
  const Model model(DType::bf16, 16, 3);
  bool is_over = false;
  int failures = 0;
  for (std::int64_t n = 0; !is_over; n += 1 + n / stride) {
    CAPTURE(strategy.summary(), steps, n);
    DistributedExecution execution(world(), strategy, options);
    execution.broadcast(model.parameters);
    const ModelFunction loss = model.loss();
    const auto step = [&] { execution.gradients(loss, model.parameters, model.batch); };
    for (int k = 0; k < steps; ++k) step();
    bool failed = false;
    if (world().rank() == rank) fail_allocation(n);
    try {
      step();
    } catch (...) {
      failed = true;
    }
    is_over = !end_failing();
    const std::vector<int> all = world().link().gather(failed ? 1 : 0);
    CHECK(std::count(all.begin(), all.end(), all[0]) == world().size());
    is_over = world().link().gather(is_over ? 1 : 0).back() != 0;
    failures += all[0];
  }
  CHECK(failures > 10);
}

TEST_CASE("wherever a rank runs out of memory, all ranks fail in that step or none") {
  for (const int steps : {0, 1, 2}) {
    const int accumulation = steps == 1 ? 2 : 1;
    check_allocations({.accumulation = accumulation, .parallelism = ParallelMode::none},
                      {.deterministic = accumulation == 1, .bucket_bytes = 640}, steps);
  }
  // With scaled losses, tries every allocation, because the end of the step has only a few.
  check_allocations({.precision = Precision{.half = DType::f16}, .parallelism = ParallelMode::none},
                    {}, 1, 10'000);
}

TEST_CASE("wherever a stage runs out of memory, all ranks fail in that step or none") {
  for (const int steps : {0, 1}) {
    check_allocations(
        {.accumulation = 3, .parallelism = ParallelMode::pipeline, .run = {.threads = 1}}, {},
        steps);
  }
  check_allocations({.precision = Precision{.half = DType::f16},
                     .accumulation = 2,
                     .parallelism = ParallelMode::pipeline,
                     .run = {.threads = 1}},
                    {}, 1, 10'000);
}

TEST_CASE("wherever a rank runs out of memory while ranks are told how they differ, all are told") {
  if (world().size() == 1) return;
  const bool is_last = world().rank() == world().size() - 1;
  const Model model(DType::f32, 16, 3);
  const ModelFunction loss = model.loss();
  for (const ParallelMode mode : {ParallelMode::none, ParallelMode::pipeline}) {
    ExecutionStrategy strategy{.accumulation = 2, .parallelism = mode, .run = {.threads = 1}};
    if (is_last) strategy.precision = Precision{PrecisionKind::full};
    bool is_over = false;
    for (std::int64_t n = 0; !is_over; n += 1 + n / 50) {
      CAPTURE(strategy.summary(), n);
      DistributedExecution execution(world(), strategy);
      execution.broadcast(model.parameters);
      bool failed = false;
      if (is_last) fail_allocation(n);
      try {
        execution.gradients(loss, model.parameters, model.batch);
      } catch (...) {
        failed = true;
      }
      is_over = !end_failing();
      CHECK(failed);
      is_over = world().link().gather(is_over ? 1 : 0).back() != 0;
    }
  }
}

}  // namespace
}  // namespace palimpsest::memory_test
