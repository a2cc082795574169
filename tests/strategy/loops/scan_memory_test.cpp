#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"
#include "tests/temporary_directory.h"

namespace palimpsest::scan_memory_test {
namespace {

struct Ring {
  Tape tape;
  Var u = tape.parameter(wave(100));
  Var speed = tape.parameter(number(0.2));
  Var loss;

  explicit Ring(std::int64_t steps, const LoopOptions& options = {}) {
    const Var end = scan(
        u, steps, [this](const Var& x, const StepNumber&) { return ring_step(x, speed); }, options);
    loss = sum(end * end);
  }
};

TEST_CASE("gradients of a scan have the same bits within any budget, which is kept") {
  const std::int64_t steps = 60;
  Ring all(steps);
  const Gradients expected = backward(all.loss);
  const Bytes most = expected.report().measured_peak;
  CHECK(most >= steps * 100 * 8);
  CHECK(most == expected.report().predicted_peak);
  Bytes smallest = 0;
  {
    Ring ring(steps);
    try {
      backward(ring.loss, {.memory_budget = 1});
    } catch (const BudgetError& error) {
      smallest = error.smallest_feasible();
    }
  }
  CHECK(smallest > 0);
  CHECK(smallest < most / 4);
  for (const Bytes budget : {smallest, 2 * smallest, most / 2, most - 1, most}) {
    for (const int threads : {1, 2}) {
      CAPTURE(budget, threads);
      Ring ring(steps);
      const Gradients found = backward(ring.loss, {.memory_budget = budget, .threads = threads});
      CHECK(found.report().measured_peak <= found.report().predicted_peak);
      CHECK(found.report().predicted_peak <= budget);
      CHECK(found.report().keep_all_peak > most - 5'000);
      CHECK(found.report().keep_all_peak < most + 5'000);
      CHECK(same_bits(found.loss(), expected.loss()));
      CHECK(same_bits(found[ring.u], expected[all.u]));
      CHECK(same_bits(found[ring.speed], expected[all.speed]));
    }
  }
}

TEST_CASE("a loop keeps a budget of its own") {
  const std::int64_t steps = 60;
  Ring all(steps);
  const Gradients expected = backward(all.loss);
  Ring ring(steps, {.memory_budget = 10'000});
  const Gradients found = backward(ring.loss);
  CHECK(same_bits(found[ring.u], expected[all.u]));
  CHECK(found.report().measured_peak < 10'000 + 5 * 800);
  Ring narrow(steps, {.memory_budget = 100});
  CHECK_THROWS_AS(backward(narrow.loss), BudgetError);
}

TEST_CASE("a scan runs alike on eager tapes, without an evaluator and in programs") {
  Ring lazily(20);
  const Gradients expected = backward(lazily.loss);
  {
    Tape tape(eager());
    const Var u = tape.parameter(wave(100));
    const Var speed = tape.parameter(number(0.2));
    const Var end =
        scan(u, 20, [&](const Var& x, const StepNumber&) { return ring_step(x, speed); });
    const Gradients found = backward(sum(end * end));
    CHECK(same_bits(found[u], expected[lazily.u]));
    CHECK(same_bits(found[speed], expected[lazily.speed]));
  }
  {
    Tape tape;
    const Var u = tape.parameter(wave(100));
    const Var speed = tape.parameter(number(0.2));
    const Var end =
        scan(u, 20, [&](const Var& x, const StepNumber&) { return ring_step(x, speed); });
    CHECK(same_bits(gradient(sum(end * end), u).value(), expected[lazily.u]));
  }
  for (const Bytes budget : {Bytes{20'000}, unlimited}) {
    Var u;
    const Program program = Program::gradients(
        [&](Tape& tape) {
          u = tape.parameter(wave(100));
          const Var speed = tape.parameter(number(0.2));
          const Var end =
              scan(u, 20, [&](const Var& x, const StepNumber&) { return ring_step(x, speed); });
          return sum(end * end);
        },
        {.memory_budget = budget});
    Runner runner(program);
    for (int run = 0; run < 3; ++run) {
      runner.run();
      CHECK(same_bits(runner.gradients()[u], expected[lazily.u]));
      CHECK(runner.report().measured_peak <= budget);
    }
  }
}

TEST_CASE("sums for captured values are made in place, but not in a loop with a journal") {
  struct Cell {
    Tape tape;
    Var x = tape.parameter(wave(64));
    Var weight = tape.parameter(wave(64 * 64));
    Var bias = tape.parameter(wave(64));
    Var loss;

    explicit Cell(const LoopOptions& options) {
      const Var matrix = reshape(weight, {64, 64});
      const Var end = scan(
          x, 8,
          [&](const Var& state, const StepNumber&) {
            const Var row = reshape(state, {1, 64});
            const Var made = reshape(matmul(row, matrix), {64});
            return tanh(made + bias) * bias;
          },
          options);
      loss = sum(end * end);
    }
  };
  const TemporaryDirectory directory;
  Cell in_turns({.resume = directory.path()});
  const Gradients expected = backward(in_turns.loss);
  Cell in_place({.check = true});  // keeps no values of steps either
  const Gradients found = backward(in_place.loss);
  CHECK(same_bits(found[in_place.x], expected[in_turns.x]));
  CHECK(same_bits(found[in_place.weight], expected[in_turns.weight]));
  CHECK(same_bits(found[in_place.bias], expected[in_turns.bias]));
  const Bytes sums = (64 * 64 + 64) * 8;
  CHECK(found.report().predicted_peak == found.report().measured_peak);
  CHECK(found.report().measured_peak < sums + 16'000);
  CHECK(expected.report().measured_peak - found.report().measured_peak >= sums);
}

TEST_CASE("adjoints that a step may replace are made in place, as are sums in several groups") {
  struct Midpoint {
    Tape tape;
    Var x = tape.parameter(wave(512));
    Var rates = tape.parameter(wave(512));
    Var loss;

    explicit Midpoint(const LoopOptions& options) {
      const auto slope = [this](const Var& state) { return rates * roll(state, 1, 0); };
      const auto step = [&](const Var& state, const StepNumber&) {
        return state + 0.1 * slope(state + 0.05 * slope(state));
      };
      const Var end = scan(x, 8, step, options);
      loss = sum(end * end);
    }
  };
  const TemporaryDirectory directory;
  Midpoint in_turns({.resume = directory.path()});
  const Gradients expected = backward(in_turns.loss);
  Midpoint in_place({.check = true});
  const Gradients found = backward(in_place.loss);
  CHECK(same_bits(found[in_place.x], expected[in_turns.x]));
  CHECK(same_bits(found[in_place.rates], expected[in_turns.rates]));
  CHECK(found.report().predicted_peak == found.report().measured_peak);
  const Bytes vector = 512 * 8;
  CHECK(expected.report().measured_peak - found.report().measured_peak >= 2 * vector);
}

}  // namespace
}  // namespace palimpsest::scan_memory_test
