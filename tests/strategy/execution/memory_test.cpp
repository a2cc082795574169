#include "palimpsest.h"

#include <algorithm>

#include "checkpoint/block.h"
#include "tests/catch.h"
#include "tests/failing_memory.h"

namespace palimpsest::memory_test {
namespace {

/// Two layers, and a loop over one of them.
struct Model {
  explicit Model(std::int64_t rows = 8, std::int64_t columns = 6)
      : parameters{Tensor::uniform({columns, columns}, 1, -0.4, 0.4),
                   Tensor::uniform({columns, columns}, 2, -0.4, 0.4)},
        batch{Tensor::uniform({rows, columns}, 3, -1, 1)} {}

  std::vector<Tensor> parameters;
  std::vector<Tensor> batch;
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

/// Lets each allocation of a step fail in turn, each in its own execution after `steps` steps, and
/// checks that the execution recovers.
void check_steps_without_memory(const Model& model, const ExecutionStrategy& strategy, int steps,
                                std::int64_t stride = 100) {
  Execution whole(strategy);
  const Found expected = step(whole, model);
  bool failed = true;
  for (std::int64_t n = 0; failed; n += 1 + n / stride) {
    CAPTURE(strategy.summary(), steps, n);
    Execution execution(strategy);
    for (int k = 0; k < steps; ++k) step(execution, model);
    fail_allocation(n);
    try {
      step(execution, model);
    } catch (const std::exception&) {
      // std::bad_alloc, an EnvironmentError, or no error if the step managed without.
    }
    failed = end_failing();
    for (int k = 0; k < 2; ++k) CHECK(same(step(execution, model), expected));
  }
}

TEST_CASE("an execution that runs out of memory anywhere goes on when there is some again") {
  std::vector<ExecutionStrategy> strategies{
      {},
      {.run = {.memory_budget = 3000}},
      {.mode = ExecutionMode::eager},
      {.mode = ExecutionMode::hybrid, .stage = {.nodes = 3}},
      {.precision = Precision{PrecisionKind::mixed, DType::bf16}},
      {.run = {.memory = AllocationPolicy::cached}},
      {.accumulation = 2}};
  for (ExecutionStrategy& strategy : strategies) {
    strategy.parallelism = ParallelMode::none;
    for (const int steps : {0, 1, 2}) check_steps_without_memory(Model(), strategy, steps);
  }
  Model with_loop;
  with_loop.loops = true;
  for (const int steps : {0, 1, 2}) check_steps_without_memory(with_loop, strategies[0], steps);
}

TEST_CASE("an execution that runs out of pages goes on when there are some again") {
  const Model model(1024, 64);  // values of 256 KiB have their own pages
  for (const ExecutionMode mode : {ExecutionMode::lazy, ExecutionMode::eager}) {
    const ExecutionStrategy strategy{
        .mode = mode,
        .parallelism = ParallelMode::none,
        .run = {.memory_budget = 3_MiB, .memory = AllocationPolicy::standard}};
    for (const int steps : {0, 1}) check_steps_without_memory(model, strategy, steps, 10);
  }
}

/// Whether `f` throws an `EnvironmentError` when its first allocation fails.
template <class F>
bool is_refused(F f) {
  bool refused = false;
  fail_allocation(0);
  try {
    f();
  } catch (const EnvironmentError&) {
    refused = true;
  }
  CHECK(end_failing());
  return refused;
}

TEST_CASE("pages that the system has not are the environment's error") {
  const Meter meter;
  release_spare(spare_bytes());
  CHECK(is_refused([&] { meter.allocate(1_MiB); }));
  CHECK(meter.reserved() == 0);
  if (!is_mapped(1_MiB)) return;  // under AddressSanitizer
  // If the system has no memory, other spare pages serve.
  meter.allocate(1_MiB);
  CHECK_FALSE(is_refused([&] { meter.allocate(2_MiB); }));
}

}  // namespace
}  // namespace palimpsest::memory_test
