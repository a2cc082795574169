#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::while_test {
namespace {

/// Decays until it is small; the number of steps depends on the rate.
Var decay_step(const Var& x, const Var& rate) { return x - rate * sin(x); }

TEST_CASE("a while loop makes the state and the gradients of the steps recorded one by one") {
  for (const double start : {0.01, 0.5, 3.0}) {
    for (const Bytes budget : {unlimited, Bytes{2'600}}) {
      CAPTURE(start, budget);
      Tape unrolled;
      const Var u = unrolled.parameter(wave(10));
      const Var scale = unrolled.parameter(number(start));
      const Var rate = unrolled.parameter(number(0.1));
      Var state = u * scale;
      std::int64_t count = 0;
      for (; max(abs(state)).item() > 0.1; ++count) state = decay_step(state, rate);
      const Gradients expected = backward(sum(state * state));

      Tape tape;
      const Var v = tape.parameter(wave(10));
      const Var s = tape.parameter(number(start));
      const Var r = tape.parameter(number(0.1));
      const Var first = v * s;
      const WhileResult loop = while_loop(
          {&first, 1},
          [](std::span<const Var> x, const StepNumber&) { return max(abs(x[0])) > 0.1; },
          [&](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
            return LoopStep{{decay_step(x[0], r)}};
          });
      const Gradients found =
          backward(sum(loop.state[0] * loop.state[0]), {.memory_budget = budget});
      CHECK(loop.steps.item<std::int64_t>() == count);
      CHECK(same_bits(found.loss(), expected.loss()));
      CHECK(same_bits(found[v], expected[u]));
      CHECK(same_bits(found[s], expected[scale]));
      CHECK(same_bits(found[r], expected[rate]));
      CHECK(found.report().measured_peak <= budget);
    }
  }
}

TEST_CASE("derivatives of both orders of a while loop agree with central differences") {
  const auto f = [](std::span<const Var> xs) {
    return while_loop(
        xs[0], [](const Var& x) { return sum(x * x) > 0.5; },
        [xs](const Var& x, const StepNumber&) { return decay_step(x, xs[1]); });
  };
  const Tensor inputs[] = {wave(3), number(0.3)};
  const GradcheckResult result = gradcheck(f, inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("a while loop whose steps differ") {
  Tape tape;
  const Var u = tape.parameter(number(7));
  // The Collatz sequence, which has 16 steps here.
  const Var end = while_loop(
      u, [](const Var& x) { return x > 1; },
      [](const Var& x, const StepNumber&) {
        return std::fmod(x.item(), 2) == 0 ? x / 2 : 3 * x + 1;
      });
  CHECK(end.item() == 1);
  CHECK(backward(end)[u].item() == 3.0 * 3 * 3 * 3 * 3 / 2048);
}

TEST_CASE("reports of while loops have the steps that a run took") {
  Tape tape;
  const Var v = tape.parameter(wave(10));
  const Var first = 2 * v;
  const WhileResult loop = while_loop(
      {&first, 1}, [](std::span<const Var> x, const StepNumber&) { return max(abs(x[0])) > 0.1; },
      [](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
        return LoopStep{{decay_step(x[0], x[0].tape().constant(number(0.1)))}};
      });
  const Var loss = sum(loop.state[0] * loop.state[0]);
  const auto count = static_cast<std::uint32_t>(loop.steps.item<std::int64_t>());
  REQUIRE(count > 20);
  const auto report_of = [&](Bytes budget) {
    return backward(loss, {.memory_budget = budget}).report().loops.at(0);
  };
  const Report::Loop all = report_of(unlimited);
  CHECK(all.steps == count);
  CHECK(all.forward_steps == 2 * count);  // once forward and once with a tape
  CHECK(all.disk_writes == 0);
  const Report::Loop some = report_of(3'000);
  CHECK(some.steps == count);
  CHECK(some.states < count);
  CHECK(some.forward_steps > all.forward_steps);

  Var parameter;
  const Program program = Program::gradients([&](Tape& own) {
    parameter = own.parameter(wave(10));
    const Var end = while_loop(
        parameter, [](const Var& x) { return max(abs(x)) > 0.1; },
        [](const Var& x, const StepNumber&) { return x * 0.5; });
    return sum(end);
  });
  Runner runner(program);
  for (const double scale : {1.0, 64.0}) {
    const Tensor start = wave(10);
    for (double& x : start.data<double>()) x *= scale;
    runner.bind(parameter, start);
    runner.run();
    CHECK(runner.report().loops.at(0).steps == (scale > 1 ? 10u : 4u));
  }
}

TEST_CASE("a while loop that does not end, and conditions of other types, are errors") {
  Tape tape;
  const Var u = tape.parameter(number(1));
  const auto same = [](const Var& x, const StepNumber&) { return x; };
  const Var endless = while_loop(u, [](const Var& x) { return x > 0; }, same, {.max_steps = 100});
  check_error([&] { endless.value(); }, {"[while_loop]", "100 steps", "max_steps"});
  check_error([&] { while_loop(u, [](const Var& x) { return x; }, same); },
              {"[while_loop]", "f64 ()", "bool"});
  const Var v = tape.parameter(wave(3));
  check_error([&] { while_loop(v, [](const Var& x) { return x > 0; }, same); },
              {"[while_loop]", "bool (3)", "one element"});
}

}  // namespace
}  // namespace palimpsest::while_test
