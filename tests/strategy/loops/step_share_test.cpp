#include <functional>
#include <vector>

#include "checkpoint/node_seconds.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::step_share_test {
namespace {

/// A step with many intermediate values that fusion cannot remove.
Var long_step(const Var& u, const Var& c) {
  Var x = u;
  for (int i = 0; i < 8; ++i) x = cumsum(sin(x), 0) * c;
  return x;
}

struct Long {
  Tape tape;
  Var u = tape.parameter(wave(500));
  Var c = tape.parameter(number(0.01));
  Var loss;

  explicit Long(const LoopOptions& options = {}, bool again = false) {
    const Var end = scan(
        u, 30,
        [this, again](const Var& x, const StepNumber& n) {
          return again && n % 3 == 0 ? long_step(x * 0.99, c) : long_step(x, c);
        },
        options);
    loss = sum(end * end);
  }
};

Bytes smallest_budget_of(const Long& program) {
  try {
    backward(program.loss, {.memory_budget = 1});
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
  return 0;
}

TEST_CASE("a step that does not fit whole is planned in a share of the budget") {
  const bool again = GENERATE(false, true);
  Long all({}, again);
  const Gradients expected = backward(all.loss);
  const Long other({}, again);
  const Bytes smallest = smallest_budget_of(other);
  REQUIRE(smallest > 0);
  bool any_narrow = false;
  for (int k = 0; k <= 6; ++k) {
    const Bytes budget = smallest + smallest * k / 5;
    CAPTURE(again, budget, smallest);
    Long program({}, again);
    const Gradients found = backward(program.loss, {.memory_budget = budget});
    CHECK(found.report().measured_peak <= found.report().predicted_peak);
    CHECK(found.report().predicted_peak <= budget);
    CHECK(same_bits(found[program.u], expected[all.u]));
    CHECK(same_bits(found[program.c], expected[all.c]));
    const Report::Loop& loop = found.report().loops.at(0);
    any_narrow = any_narrow || loop.step_budget > 0;
    if (k == 0) CHECK(loop.step_budget > 0);
    CHECK(loop.step_budget <= budget);
  }
  CHECK(any_narrow);
}

/// The smallest budget within which `run` ends, from the refusals.
template <class Run>
Bytes smallest_of(Run run) {
  Bytes budget = 1;
  for (int refusals = 0; refusals < 3; ++refusals) {
    try {
      run(budget);
      return budget;
    } catch (const BudgetError& error) {
      budget = error.smallest_feasible();
    }
  }
  return 0;
}

TEST_CASE("a loop that is not differentiated shares a budget too") {
  const bool again = GENERATE(false, true);
  Long all({}, again);
  const Tensor expected = all.loss.value();
  const Long forward({}, again);
  const Bytes smallest =
      smallest_of([&](Bytes budget) { evaluate(forward.loss, {.memory_budget = budget}); });
  REQUIRE(smallest > 0);
  const Bytes differentiated = smallest_budget_of(Long({}, again));
  CHECK(smallest < differentiated);
  const Bytes whole = evaluate(Long({}, again).loss).predicted_peak;
  CHECK(smallest < whole);
  for (const Bytes budget : {smallest, (smallest + whole) / 2, whole}) {
    CAPTURE(again, budget, smallest, whole);
    Long program({}, again);
    const Report report = evaluate(program.loss, {.memory_budget = budget});
    CHECK(report.measured_peak <= report.predicted_peak);
    CHECK(report.predicted_peak <= budget);
    CHECK(same_bits(program.loss.value(), expected));
  }
  const Long less({}, again);
  CHECK_THROWS_AS(evaluate(less.loss, {.memory_budget = smallest - 1}), BudgetError);
}

TEST_CASE("a loop that is not differentiated keeps a budget of its own") {
  const Tensor expected = Long().loss.value();
  const Bytes whole = evaluate(Long().loss).predicted_peak;
  const Bytes smallest =
      smallest_of([&](Bytes budget) { evaluate(Long(LoopOptions{.memory_budget = budget}).loss); });
  REQUIRE(smallest > 0);
  CHECK(smallest < whole);
  Long program(LoopOptions{.memory_budget = smallest});
  const Report report = evaluate(program.loss);
  CHECK(report.measured_peak <= report.predicted_peak);
  CHECK(report.predicted_peak <= smallest + 4 * 500 * 8);  // the end and its square
  CHECK(same_bits(program.loss.value(), expected));
  CHECK_THROWS_AS(evaluate(Long(LoopOptions{.memory_budget = smallest - 1}).loss), BudgetError);
}

TEST_CASE("what a step reads while it is recorded is within the budget of the evaluator") {
  using Make = std::function<std::shared_ptr<EngineEvaluator>(Bytes budget)>;
  const std::vector<Make> evaluators{
      [](Bytes budget) { return lazy({.memory_budget = budget, .threads = 1}); },
      [](Bytes budget) { return hybrid({.memory_budget = budget, .threads = 1}); },
      [](Bytes budget) { return eager({.memory_budget = budget, .threads = 1}); },
      [](Bytes budget) {
        return precise({PrecisionKind::full}, hybrid({.memory_budget = budget, .threads = 1}));
      }};
  /// A loop of two operands that are not computed yet.
  const auto loss_on = [](Tape& tape, bool reads) {
    const Var u = tape.parameter(wave(500));
    const Var speed = sin(u * 0.3);
    const Var start = tanh(u * 2.0);
    const Var other = exp(sin(u));  // something to drop
    const Var end = scan(start, 5, [speed, reads](const Var& x, const StepNumber&) {
      const Var next = long_step(x + 0.1 * speed, 0.01 * speed);
      return reads && sum(next).item() > 0 ? sin(next) : next;
    });
    return sum(end * end) + sum(other);
  };
  Tape tape;
  const Tensor expected = loss_on(tape, true).value();
  for (const Make& make : evaluators) {
    const auto run = [&](Bytes budget) {
      const auto evaluator = make(budget);
      Tape within(evaluator);
      const Tensor found = loss_on(within, true).value();
      CHECK(same_bits(found, expected));
      CHECK(evaluator->meter().peak() <= budget);
      CHECK(evaluator->meter().peak_reserved() <= budget);
    };
    Bytes budget = 1;
    int refusals = 0;
    for (bool fits = false; !fits; ++refusals) {
      try {
        run(budget);
        fits = true;
      } catch (const BudgetError& error) {
        REQUIRE(error.smallest_feasible() > budget);
        budget = error.smallest_feasible();
      }
    }
    CAPTURE(&make - evaluators.data(), budget, refusals);
    CHECK(refusals < 40);
    CHECK(budget < 20 * 500 * 8);
    for (const Bytes more : {budget + 4000, 2 * budget, 8 * budget}) run(more);
  }
}

TEST_CASE("a step is planned in a share of a loop's own budget") {
  Long all;
  const Gradients expected = backward(all.loss);
  Bytes smallest = 0;
  try {
    Long program({.memory_budget = 100});
    backward(program.loss);
  } catch (const BudgetError& error) {
    smallest = error.smallest_feasible();
  }
  REQUIRE(smallest > 0);
  for (const Bytes budget : {smallest, smallest + 4'000, smallest + 20'000}) {
    CAPTURE(budget);
    Long program({.memory_budget = budget});
    const Gradients found = backward(program.loss);
    CHECK(same_bits(found[program.u], expected[all.u]));
    CHECK(found.report().measured_peak <= budget + 10 * 4'000);
  }
  Long narrow({.memory_budget = smallest});
  CHECK(backward(narrow.loss).report().loops.at(0).step_budget > 0);
}

TEST_CASE("no budget below the one that a loop names is enough") {
  const int body = GENERATE(0, 1, 2);
  // A step that is planned whole makes more adjoints in place than one in a share of the budget.
  const auto step = [&](const Var& x, const Var& a, const Var& b) {
    if (body == 0) {
      const Var y = x * 0.7 + b;
      return y - tanh(y * 0.7 + a + x) * 0.5;
    }
    if (body == 1) {
      const Var y = x - x * x * 0.5;
      return ((tanh(y + x) * 0.7 + a) * 0.7 + b) * 0.7 + a;
    }
    const Var y = x * 0.7 + b;
    return tanh(roll(tanh(y * 2.0), 1, 0) * 0.7 + a + y);
  };
  const auto named = [&](Bytes budget) {
    Tape tape;
    const Var a = tape.parameter(wave(144));
    const Var b = tape.parameter(wave(144));
    const Var end = scan(tape.parameter(wave(144)), 3,
                         [&](const Var& x, const StepNumber&) { return step(x, a, b); });
    try {
      backward(sum(end * end), {.memory_budget = budget, .threads = 1});
    } catch (const BudgetError& error) {
      return error.smallest_feasible();
    }
    return Bytes{0};
  };
  const Bytes smallest = named(1);
  REQUIRE(smallest > 0);
  CHECK(named(smallest) == 0);
  const auto line = static_cast<Bytes>(buffer_alignment);
  for (const Bytes less : {Bytes{1}, line, 2 * line, 6 * line, 12 * line, 18 * line, 36 * line}) {
    CAPTURE(body, smallest, less);
    CHECK(named(smallest - less) == smallest);
  }
}

TEST_CASE("a loop in a loop shares the budget of a step") {
  const auto run = [](Bytes budget, Bytes* smallest) {
    Tape tape;
    const Var u = tape.parameter(wave(300));
    const Var end = scan(u, 6, [](const Var& x, const StepNumber&) {
      return scan(x, 40, [](const Var& y, const StepNumber&) { return ring_step(y, mean(y)); });
    });
    try {
      return backward(sum(end * end), {.memory_budget = budget})[u].clone();
    } catch (const BudgetError& error) {
      *smallest = error.smallest_feasible();
      return Tensor();
    }
  };
  Bytes smallest = 0;
  const Tensor expected = run(unlimited, nullptr);
  run(1, &smallest);
  REQUIRE(smallest > 0);
  // Less than the states of one inner loop.
  CHECK(smallest < 40 * 300 * 8);
  for (const Bytes budget : {smallest, smallest * 3 / 2, 2 * smallest}) {
    CAPTURE(budget);
    CHECK(same_bits(run(budget, nullptr), expected));
  }
}

/// Seconds of the operations that are recorded from `first` on.
double seconds_from(const Tape& tape, NodeId first) {
  double seconds = 0;
  for (NodeId node = first; node < tape.node_count(); ++node) {
    seconds += seconds_of(NodeView(tape.nodes(), node), Machine{});
  }
  return seconds;
}

TEST_CASE("what a loop in a loop costs does not depend on the budgets that it had before") {
  Tape tape;
  const Var x = tape.parameter(wave(100));
  const Var c = tape.parameter(number(0.01));
  const Var loss = sum(scan(x, 10, [&](const Var& u, const StepNumber&) {
    return scan(u, 10, [&](const Var& v, const StepNumber&) { return long_step(v, c); });
  }));
  const NodeId begin = tape.node_count();
  gradient(loss, x);
  const double seconds = seconds_from(tape, begin);
  const auto run = [&](Bytes budget) { evaluate(loss, {.memory_budget = budget}); };
  run(smallest_of(run));
  const NodeId again = tape.node_count();
  gradient(loss, x);
  CHECK(seconds_from(tape, again) == seconds);
}

}  // namespace
}  // namespace palimpsest::step_share_test
