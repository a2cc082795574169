// Results that executions cache from run to run.
#include <oneapi/tbb/global_control.h>

#include "tests/strategy/execution/runs.h"

namespace palimpsest::cached_test {
namespace {

struct FourThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

/// Reads its weights only through values computed from them alone.
Var scores(Tape&, std::span<const Var> p, std::span<const Var> batch) {
  return matmul(batch[0], tanh(matmul(p[0], p[0])));
}

const std::vector<Tensor> weights{Tensor::normal({16, 16}, 1, 0, 0.2)};

Tensor examples(std::uint64_t seed) { return Tensor::uniform({12, 16}, seed, -1, 1); }

ExecutionStrategy with(AllocationPolicy memory, int replicas) {
  ExecutionStrategy strategy{.run = {.memory = memory}};
  if (replicas > 1) {
    strategy.parallelism = ParallelMode::data_parallel;
    strategy.workers = replicas;
  }
  return strategy;
}

TEST_CASE_METHOD(FourThreads, "execution: what weights alone make is kept for other batches") {
  for (const int replicas : {1, 2, 3}) {
    CAPTURE(replicas);
    Execution usual(with(AllocationPolicy::minimal_peak, replicas));
    Execution cached(with(AllocationPolicy::cached, replicas));
    for (std::uint64_t step = 0; step < 5; ++step) {
      const std::vector<Tensor> batch{examples(step)};
      const Tensor expected = usual.value(scores, weights, batch);
      CHECK(same_bits(cached.value(scores, weights, batch), expected));
      const auto kept = step < 2 ? 0u : static_cast<std::uint32_t>(replicas);
      CHECK(cached.report().cached == kept);
      CHECK(cached.report().computed < usual.report().computed + (kept > 0 ? 0 : 1));
    }
  }
}

TEST_CASE_METHOD(FourThreads, "execution: micro-batches find what the one before made of weights") {
  const ModelFunction loss = [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    return mean(square(scores(tape, p, batch)));
  };
  std::vector<Tensor> moving{weights[0].clone()};
  for (const int replicas : {1, 2}) {
    CAPTURE(replicas);
    ExecutionStrategy strategy = with(AllocationPolicy::minimal_peak, replicas);
    strategy.accumulation = 3;
    Execution usual(strategy);
    strategy.run.memory = AllocationPolicy::cached;
    Execution cached(strategy);
    for (std::uint64_t step = 0; step < 4; ++step) {
      const std::vector<Tensor> batch{examples(step)};
      const Gradients expected = usual.gradients(loss, moving, batch);
      const Gradients found = cached.gradients(loss, moving, batch);
      CHECK(same_bits(found.begin()->gradient, expected.begin()->gradient));
      // The second run detects the unchanged values, and the third one has them cached.
      CHECK(found.report().cached >= static_cast<std::uint32_t>(replicas));
      CHECK(found.report().computed < expected.report().computed);
      moving[0].data<float>()[step] += 0.1f;
    }
  }
}

}  // namespace
}  // namespace palimpsest::cached_test
