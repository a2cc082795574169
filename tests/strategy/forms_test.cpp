#include "strategy/forms.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::forms_test {
namespace {

TEST_CASE("planned seconds are those of the plan, and infinite where there is none") {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    INFO(seed);
    Tape tape;
    const Var loss = record_random(tape, seed, 25).loss;
    const ValueId targets[] = {loss.id()};
    const LoweredStore::Request request{targets, tape.node_count(), {}, 1};
    const Bytes all = plan_tape(tape, request, {}).plan.predicted_peak();
    KeptPlannings plannings(4);
    for (const Bytes percent : {100, 70, 50, 30, 10, 0}) {
      INFO(percent);
      const RunOptions options{.memory_budget = all * percent / 100};
      const double seconds = planned_seconds(tape, request, options, plannings);
      try {
        const double planned = plan_tape(tape, request, options).plan.simulation.cost;
        CHECK(seconds == planned);
      } catch (const BudgetError&) {
        CHECK(std::isinf(seconds));
        ++refused;
      }
    }
  }
  CHECK(refused >= 12);
  CHECK(refused < 36);
}

}  // namespace
}  // namespace palimpsest::forms_test
