#include "strategy/backward.h"

#include "tests/catch.h"
//
#include <oneapi/tbb/global_control.h>
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "strategy/evaluators/engine.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::contracts_test {
namespace {

/// Uses eight threads on every machine.
const tbb::global_control eight_threads(tbb::global_control::max_allowed_parallelism, 8);

/// Gradients by the interpreter, without plan, budget or threads. The oracle.
std::vector<Tensor> interpreted(std::uint64_t seed, int size) {
  Tape tape;
  const RandomProgram program = record_random(tape, seed, size);
  std::vector<Tensor> tensors;
  for (const Var& gradient : gradient(program.loss, program.parameters)) {
    tensors.push_back(gradient.value());
  }
  return tensors;
}

bool equal(const std::vector<Tensor>& expected, const Gradients& gradients,
           const std::vector<Var>& parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!same_bits(expected[i], gradients[parameters[i]])) return false;
  }
  return true;
}

struct Case {
  std::uint64_t seed;
  int size;
};

Case any_case() {
  return {*rc::gen::inRange<std::uint64_t>(1, 1'000'000), *rc::gen::inRange(3, 60)};
}

std::shared_ptr<Evaluator> mode(int index) { return index == 0 ? lazy() : eager(); }

TEST_CASE("the same bits at every budget, planner, mode and number of threads") {
  rc::prop("gradients equal the interpreter's", [] {
    const auto [seed, size] = any_case();
    const std::vector<Tensor> expected = interpreted(seed, size);
    for (int m = 0; m < 2; ++m) {
      Bytes everything = 0;
      {
        Tape tape(mode(m));
        const RandomProgram program = record_random(tape, seed, size);
        const Gradients gradients = backward(program.loss, {.planner = keep_all()});
        RC_ASSERT(equal(expected, gradients, program.parameters));
        everything = gradients.report().keep_all_peak;
      }
      const int threads = *rc::gen::element(1, 2, 3, 8);
      for (const PlannerPtr& planner :
           {automatic(), uniform({.segments = 3}), square_root(), binomial({.snapshots = 3})}) {
        Tape tape(mode(m));
        const RandomProgram program = record_random(tape, seed, size);
        const Gradients gradients =
            backward(program.loss, {.planner = planner, .threads = threads});
        RC_ASSERT(equal(expected, gradients, program.parameters));
      }
      for (const double part : {0.9, 0.7, 0.5, 0.3}) {
        Tape tape(mode(m));
        const RandomProgram program = record_random(tape, seed, size);
        const auto budget = static_cast<Bytes>(part * static_cast<double>(everything));
        try {
          const Gradients gradients =
              backward(program.loss, {.memory_budget = budget, .threads = threads});
          RC_ASSERT(equal(expected, gradients, program.parameters));
        } catch (const BudgetError& error) {
          RC_ASSERT(error.smallest_feasible() > budget);
        }
      }
    }
  });
}

TEST_CASE("measured peak ≤ predicted peak ≤ budget, and live bytes as simulated") {
  rc::prop("at any budget that is feasible", [] {
    const auto [seed, size] = any_case();
    const int m = *rc::gen::inRange(0, 2);
    const int threads = *rc::gen::element(1, 2, 8);
    const double part = *rc::gen::element(0.25, 0.4, 0.6, 0.8, 1.0);
    Tape tape(mode(m));
    const RandomProgram program = record_random(tape, seed, size);
    const Bytes everything = plan_backward(program.loss).keep_all_peak;
    const auto budget = static_cast<Bytes>(part * static_cast<double>(everything));
    try {
      const Gradients gradients =
          backward(program.loss, {.memory_budget = budget, .threads = threads});
      const Report& report = gradients.report();
      RC_ASSERT(report.predicted_peak <= budget);
      RC_ASSERT(report.measured_peak <= report.predicted_peak);
      RC_ASSERT(report.measured_live_peak <= report.predicted_peak);
      if (threads == 1) RC_ASSERT(report.measured_live_peak == report.predicted_live_peak);
    } catch (const BudgetError&) {
    }
  });
}

const Meter& meter_of(const Tape& tape) {
  return static_cast<EngineEvaluator&>(*tape.evaluator()).engine().meter();
}

/// The smallest budget for recording the program eagerly, as named by the errors.
Bytes smallest_recording(std::uint64_t seed, int size) {
  Bytes budget = 0;
  while (true) {
    try {
      Tape tape(eager({.memory_budget = budget}));
      record_random(tape, seed, size);
      return budget;
    } catch (const BudgetError& error) {
      RC_ASSERT(error.budget() == budget);
      RC_ASSERT(error.smallest_feasible() > budget);
      budget = error.smallest_feasible();
    }
  }
}

TEST_CASE("an eager tape stays within its budget from the first node on, with the same bits") {
  rc::prop("while recording, when values are asked for, and in backward", [] {
    const auto [seed, size] = any_case();
    const int threads = *rc::gen::element(1, 2, 8);
    const std::vector<Tensor> expected = interpreted(seed, size);
    Tape oracle;
    const RandomProgram reference = record_random(oracle, seed, size);
    const Bytes everything = plan_backward(reference.loss).keep_all_peak;
    const Bytes smallest = smallest_recording(seed, size);
    const Bytes more = std::max<Bytes>(everything - smallest, 0) * *rc::gen::inRange(0, 4) / 3;
    const Bytes budget = smallest + more;
    const RunOptions options{.memory_budget = budget, .threads = threads};

    Tape tape(eager(options));
    const RandomProgram program = record_random(tape, seed, size);
    RC_ASSERT(meter_of(tape).peak_reserved() <= budget);
    RC_ASSERT(meter_of(tape).live() > 0);
    if (*rc::gen::arbitrary<bool>()) {
      // Values that were not requested while recording may need more memory than recording did.
      for (std::size_t i = 0; i < program.values.size(); ++i) {
        try {
          RC_ASSERT(same_bits(program.values[i].value(), reference.values[i].value()));
        } catch (const BudgetError& error) {
          RC_ASSERT(error.smallest_feasible() > budget);
        }
      }
      RC_ASSERT(meter_of(tape).peak_reserved() <= budget);
    }
    try {
      const Gradients gradients = backward(program.loss, {.threads = threads});
      RC_ASSERT(gradients.report().budget == budget);
      RC_ASSERT(meter_of(tape).peak_reserved() <= budget);
      RC_ASSERT(equal(expected, gradients, program.parameters));
    } catch (const BudgetError& error) {
      RC_ASSERT(error.smallest_feasible() > budget);
    }
    RC_ASSERT(equal(expected, backward(program.loss, {.memory_budget = 2 * everything}),
                    program.parameters));
  });
}

TEST_CASE("gradients recorded on an eager tape stay within its budget too") {
  rc::prop("at the smallest budget named", [] {
    const auto [seed, size] = any_case();
    const std::vector<Tensor> expected = interpreted(seed, size);
    Bytes budget = smallest_recording(seed, size);
    for (bool done = false; !done;) {
      Tape tape(eager({.memory_budget = budget}));
      try {
        const RandomProgram program = record_random(tape, seed, size);
        const std::vector<Var> gradients = gradient(program.loss, program.parameters);
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          RC_ASSERT(same_bits(gradients[i].value(), expected[i]));
        }
        done = true;
      } catch (const BudgetError& error) {
        RC_ASSERT(error.smallest_feasible() > budget);
        budget = error.smallest_feasible();
      }
      RC_ASSERT(meter_of(tape).peak_reserved() <= budget);
    }
  });
}

TEST_CASE("a larger budget never costs more") {
  rc::prop("cost falls as the budget grows", [] {
    const auto [seed, size] = any_case();
    Tape tape;
    const RandomProgram program = record_random(tape, seed, size);
    const Bytes everything = plan_backward(program.loss).keep_all_peak;
    double cost = std::numeric_limits<double>::infinity();
    auto percents = *rc::gen::container<std::vector<Bytes>>(3, rc::gen::inRange<Bytes>(10, 110));
    percents.push_back(110);
    std::sort(percents.begin(), percents.end());
    const double keep_all = plan_backward(program.loss).simulation.cost;
    for (const Bytes percent : percents) {
      const Bytes budget = everything * percent / 100;
      try {
        const Plan plan = plan_backward(program.loss, {.memory_budget = budget});
        RC_ASSERT(plan.simulation.cost <= cost);
        // Also holds when the program is fused or simplified differently within the budget.
        RC_ASSERT(std::abs(plan.compute_overhead() - (plan.simulation.cost / keep_all - 1)) < 1e-9);
        cost = plan.simulation.cost;
      } catch (const BudgetError&) {
        RC_ASSERT(std::isinf(cost));
      }
    }
    RC_ASSERT(cost == plan_backward(program.loss).simulation.cost);
  });
}

TEST_CASE("a larger budget never costs more on tapes of their own, with fast first plans too") {
  constexpr std::uint32_t planned_at_once = 83;  // nodes; above, a fast plan comes first
  int checked = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    double overhead = std::numeric_limits<double>::infinity();
    Bytes everything = 0;
    for (const Bytes percent : {60, 65, 70, 75, 80}) {
      Tape tape;
      const RandomProgram program = record_random(tape, seed, 9);
      if (everything == 0) {
        const RunOptions as_recorded{.fuse = false, .simplify = false};
        if (plan_backward(program.loss, as_recorded).simulation.computed > planned_at_once) break;
        everything = plan_backward(program.loss).keep_all_peak;
        ++checked;
      }
      CAPTURE(seed, percent);
      try {
        const RunOptions options{.memory_budget = everything * percent / 100, .threads = 1};
        const Report report = backward(program.loss, options).report();
        CHECK(report.compute_overhead <= overhead + 1e-9);
        overhead = report.compute_overhead;
      } catch (const BudgetError&) {
        CHECK(std::isinf(overhead));
      }
    }
  }
  CHECK(checked >= 3);
}

TEST_CASE("too small a budget names the smallest that works, before any work") {
  rc::prop("the smallest works", [] {
    const auto [seed, size] = any_case();
    Tape tape;
    const RandomProgram program = record_random(tape, seed, size);
    Bytes smallest = 0;
    try {
      backward(program.loss, {.memory_budget = 1});
      RC_FAIL("a budget of one byte was met");
    } catch (const BudgetError& error) {
      smallest = error.smallest_feasible();
      const std::string words = error.what();
      RC_ASSERT(words.find(std::to_string(smallest)) != std::string::npos);
    }
    for (const Var& value : program.values) RC_ASSERT(!tape.has_value(value.id()));
    RC_ASSERT(backward(program.loss, {.memory_budget = smallest}).report().measured_peak <=
              smallest);
  });
}

TEST_CASE("every value is there after backward, computed again when it was dropped") {
  rc::prop("values equal those computed before", [] {
    const auto [seed, size] = any_case();
    Tape tape(mode(*rc::gen::inRange(0, 2)));
    const RandomProgram program = record_random(tape, seed, size);
    Tape other;
    const RandomProgram oracle = record_random(other, seed, size);
    backward(program.loss, {.planner = square_root()});
    for (std::size_t i = 0; i < program.values.size(); ++i) {
      RC_ASSERT(same_bits(program.values[i].value(), oracle.values[i].value()));
    }
  });
}

}  // namespace
}  // namespace palimpsest::contracts_test
