#include "palimpsest.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/failing_memory.h"

namespace palimpsest::memory_test {
namespace {

/// Two layers and a loop over one of them.
struct Model {
  std::vector<Tensor> parameters{Tensor::uniform({6, 6}, 1, -0.4, 0.4),
                                 Tensor::uniform({6, 6}, 2, -0.4, 0.4)};
  std::vector<Tensor> batch{Tensor::uniform({8, 6}, 3, -1, 1)};
  bool loops = false;

  ModelFunction loss() const {
    return [this](Tape&, std::span<const Var> p, std::span<const Var> b) {
      Var y = tanh(matmul(tanh(matmul(b[0], p[0])), p[1]));
      if (loops) {
        y = scan(y, 5, [&](const Var& x, const StepNumber&) { return tanh(matmul(x, p[0])); });
      }
      return mean(y * y);
    };
  }
};

struct Found {
  double loss;
  std::vector<Tensor> gradients;
};

Found step(Execution& execution, const Model& model) {
  const Gradients made = execution.gradients(model.loss(), model.parameters, model.batch);
  Found found{made.loss().item(), {}};
  for (const Gradients::Entry& entry : made) found.gradients.push_back(entry.gradient);
  return found;
}

bool same(const Found& a, const Found& b) {
  return a.loss == b.loss && std::ranges::equal(a.gradients, b.gradients, same_bits);
}

/// Has allocations of a step fail, each in an execution of its own that has taken `steps` before,
/// and looks whether it goes on.
void check_steps_without_memory(const Model& model, const ExecutionStrategy& strategy, int steps) {
  Execution whole(strategy);
  const Found expected = step(whole, model);
  bool failed = true;
  for (std::int64_t n = 0; failed; n += 1 + n / 100) {
    CAPTURE(strategy.summary(), steps, n);
    Execution execution(strategy);
    for (int k = 0; k < steps; ++k) step(execution, model);
    fail_allocation(n);
    try {
      step(execution, model);
    } catch (const std::exception&) {
      // std::bad_alloc, an EnvironmentError, or nothing where it could do without.
    }
    failed = end_failing();
    for (int k = 0; k < 2; ++k) CHECK(same(step(execution, model), expected));
  }
}

TEST_CASE("an execution that runs out of memory anywhere goes on when there is some again") {
  std::vector<ExecutionStrategy> strategies{
      {},
      {.memory_budget = 3000},
      {.mode = ExecutionMode::eager},
      {.mode = ExecutionMode::hybrid, .stage = {.nodes = 3}},
      {.precision = Precision{PrecisionKind::mixed, DType::bf16}},
      {.memory = MemoryHandling::cached},
      {.accumulation = 2}};
  for (ExecutionStrategy& strategy : strategies) {
    strategy.parallelism = ParallelMode::none;
    for (const int steps : {0, 1, 2}) check_steps_without_memory({}, strategy, steps);
  }
  Model with_loop;
  with_loop.loops = true;
  for (const int steps : {0, 1, 2}) check_steps_without_memory(with_loop, strategies[0], steps);
}

}  // namespace
}  // namespace palimpsest::memory_test
