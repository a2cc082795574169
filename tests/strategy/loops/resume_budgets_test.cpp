#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/loops.h"
#include "tests/temporary_directory.h"

namespace palimpsest::resume_budgets_test {
namespace {

TEST_CASE("a loop with a journal may have large budgets, of the run and of a step") {
  const auto run = [](Bytes budget, const LoopOptions& options) {
    Tape tape;
    const Var u = tape.parameter(wave(150'000));
    const Var end = scan(
        u, 4,
        [](const Var& x, const StepNumber&) {
          return cumsum(sin(cumsum(sin(cumsum(sin(x), 0)), 0)), 0) * 1e-6;
        },
        options);
    const Gradients found = backward(sum(end * end), {.memory_budget = budget});
    return std::pair(found[u], found.report());
  };
  const auto [expected, whole] = run(unlimited, {});
  Bytes smallest = 0;
  try {
    run(1, {});
  } catch (const BudgetError& error) {
    smallest = error.smallest_feasible();
  }
  const TemporaryDirectory directory;
  const auto [found, report] = run(smallest + smallest / 8, {.resume = directory.path()});
  CHECK(same_bits(found, expected));
  // The product of both does not fit in the limit for the sizes of a shape.
  CHECK(report.loops.at(0).step_budget * report.budget > Bytes{1} << 44);
}

}  // namespace
}  // namespace palimpsest::resume_budgets_test
