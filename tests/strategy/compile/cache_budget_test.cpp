#include "strategy/compile/cache_budget.h"

#include <algorithm>

#include "checkpoint/planners.h"
#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::cache_budget_test {
namespace {

TEST_CASE("a budget for caches: the fastest, where it is worth it") {
  Machine machine;
  machine.caches[0] = {1'000, 1e10};
  machine.caches[1] = {100'000, 1e10};
  const auto chosen = [&](Bytes budget, auto seconds) {
    return budget_for_caches(machine, budget, [&](Bytes within) -> std::optional<WithinBudget> {
      if (within < 30'000) return {};
      return WithinBudget{std::min<Bytes>(within, 1'000'000), 0, seconds(within)};
    });
  };
  // Less memory is faster, down to the size of a cache.
  CHECK(chosen(unlimited, [](Bytes within) { return static_cast<double>(within); }) == 100'000);
  CHECK(chosen(unlimited, [](Bytes within) { return within < 900'000 ? 0.98 : 1.0; }) == unlimited);
  CHECK(chosen(200'000, [](Bytes) { return 1.0; }) == 200'000);
  CHECK(chosen(10'000, [](Bytes) { return 1.0; }) == 10'000);
}

/// An explicit scheme of many steps, recorded step by step.
Var record_scheme(Tape& tape, Var& u, int steps) {
  u = tape.parameter(wave(4'000));
  const Var speed = tape.constant(number(0.2));
  Var x = u;
  for (int n = 0; n < steps; ++n) x = ring_step(tanh(x), speed);
  return sum(x * x);
}

TEST_CASE("on a machine with small caches a program is computed again without being asked to") {
  Machine machine{.flops_per_second = 1e12, .bytes_per_second = 1e9, .seconds_per_node = 1e-9};
  machine.caches[0] = {32 * 4'000 * 8, 1e11};
  Tape plain;
  Tape cached;
  Tape budgeted;
  Var u, v, w;
  const Gradients expected = backward(record_scheme(plain, u, 150));
  const Gradients found = backward(record_scheme(cached, v, 150), {.machine = machine});
  CHECK(expected.report().recomputed == 0);
  CHECK(found.report().recomputed > 0);
  CHECK(found.report().budget == unlimited);
  CHECK(found.report().measured_peak < expected.report().measured_peak / 2);
  CHECK(same_bits(found[v], expected[u]));
  const Program program = Program::gradients(
      [&](Tape& tape) { return record_scheme(tape, w, 150); }, {.machine = machine});
  CHECK(program.plan().simulation.recomputed > 0);
  CHECK(program.plan().budget == unlimited);
  const Var again = record_scheme(budgeted, w, 150);
  CHECK(plan_backward(again, {.machine = machine}).simulation.recomputed > 0);
}

/// Knows schedules within a budget the first `knows` times, and only keep-all later.
class Forgetful final : public Planner {
 public:
  std::string name() const override { return "forgetful"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    const bool is_known = budget != unlimited && ++asked <= knows;
    return (is_known ? automatic() : keep_all())->propose(graph, budget);
  }
  int knows = 0;
  mutable int asked = 0;
};

TEST_CASE("a budget for caches in which no plan is found again is no reason to refuse a run") {
  Machine machine{.flops_per_second = 1e12, .bytes_per_second = 1e9, .seconds_per_node = 1e-9};
  machine.caches[0] = {32 * 4'000 * 8, 1e11};
  int fell_back = 0;
  int fits = 0;
  for (int knows = 0; knows < 5; ++knows) {
    INFO(knows);
    const auto planner = std::make_shared<Forgetful>();
    planner->knows = knows;
    Tape tape;
    Var u;
    const Var loss = record_scheme(tape, u, 150);
    const RunOptions options{.planner = planner, .fuse = false, .machine = machine};
    const Gradients gradients = backward(loss, options);
    CHECK(gradients.report().budget == unlimited);
    if (gradients.report().recomputed > 0) {
      ++fits;
    } else if (knows > 0) {
      ++fell_back;
      CHECK(planner->asked > knows);
    }
    const int asked = planner->asked;
    backward(loss, options);  // the budget is chosen once
    CHECK(planner->asked == asked);
  }
  CHECK(fell_back > 0);
  CHECK(fits > 0);
}

}  // namespace
}  // namespace palimpsest::cache_budget_test
