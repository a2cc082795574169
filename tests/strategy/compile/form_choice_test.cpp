#include "strategy/compile/form_choice.h"

#include <cmath>

#include "checkpoint/planners.h"
#include "tests/catch.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::form_choice_test {
namespace {

TEST_CASE("a look at a tape finds the plan, and nothing where there is none") {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    INFO(seed);
    Tape tape;
    const Var loss = record_random(tape, seed, 25).loss;
    const ValueId targets[] = {loss.id()};
    const ProgramSpec spec{targets, tape.node_count(), {}, 1};
    const Bytes all = plan_tape(tape, spec, {})->plan.predicted_peak();
    std::vector<RunOptions> rows{{.planner = fraction(0.5)}, {.planner = fraction(0.05)}};
    for (const Bytes percent : {100, 70, 50, 30, 10, 0}) {
      rows.push_back({.memory_budget = all * percent / 100});
    }
    for (const RunOptions& options : rows) {
      INFO(options.memory_budget);
      const std::optional<Planned> seen = look_at_tape(tape, spec, options);
      const OrRefusal<Planned> planned = plan_tape(tape, spec, options);
      REQUIRE(seen.has_value() == bool{planned});
      if (seen) CHECK(cost(*seen) == cost(*planned));
      if (!planned) ++refused;
    }
  }
  CHECK(refused >= 12);
  CHECK(refused < 40);
}

TEST_CASE("the smallest budget of all forms is that of the best one alone") {
  int smaller = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO(seed);
    Tape tape;
    const Var loss = record_random(tape, seed, 25).loss;
    const ValueId targets[] = {loss.id()};
    const ProgramSpec spec{targets, tape.node_count(), {}, 1};
    LoweredForms forms(tape, spec);
    Bytes least = unlimited;
    Bytes largest = 0;
    for (const GraphForm& form : forms_to_compare({}, forms)) {
      const std::shared_ptr<const Lowered>& lowered = forms.get(tape, spec, form);
      const Bytes alone = smallest_budget(lowered->graph(), *planner_of({}));
      least = std::min(least, alone);
      largest = std::max(largest, alone);
    }
    const RunOptions tiny{.memory_budget = 1};
    CHECK(plan_tape(tape, spec, tiny).refusal().smallest_feasible() == least);
    CHECK(plan_tape(tape, spec, {.memory_budget = least})->plan.predicted_peak() <= least);
    if (least < largest) ++smaller;
  }
  CHECK(smaller > 0);
}

}  // namespace
}  // namespace palimpsest::form_choice_test
