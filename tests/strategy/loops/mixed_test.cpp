#include <cmath>
#include <thread>

#include "checkpoint/chains/binomial.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::mixed_test {
namespace {

using Catch::Matchers::WithinRel;

TEST_CASE("gradients of different values of one loop share its states") {
  const auto run = [](const LoopOptions& own, const RunOptions& options) {
    Tape tape;
    const Var u = tape.parameter(wave(100));
    const Var c = tape.parameter(number(0.2));
    const Var end =
        scan(u, 40, [&](const Var& x, const StepNumber&) { return ring_step(x, c); }, own);
    const Var by_u = gradient(sum(end * end), u);
    const Var by_c = gradient(sum(sin(end)), c);
    const Var both[] = {by_u, by_c};
    evaluate(both, options);
    return std::pair(by_u.value().clone(), by_c.value().clone());
  };
  const auto [by_u, by_c] = run({}, {});
  const Bytes step = 30'000 / cases(10);
  for (Bytes budget = 10'000; budget < 40'000; budget += step) {
    CAPTURE(budget);
    const auto own = run({.memory_budget = budget}, {});
    CHECK(same_bits(own.first, by_u));
    CHECK(same_bits(own.second, by_c));
    const auto within = run({}, {.memory_budget = budget + 4'000});
    CHECK(same_bits(within.first, by_u));
    CHECK(same_bits(within.second, by_c));
  }
}

TEST_CASE("second derivatives have the same bits within any budget") {
  const auto run = [](Bytes budget) {
    Tape tape;
    const Var u = tape.parameter(wave(100));
    const Var end =
        scan(u, 30, [](const Var& x, const StepNumber&) { return ring_step(x, mean(x)); });
    const Var g = gradient(sum(end * end), u);
    return backward(sum(g * g), {.memory_budget = budget})[u].clone();
  };
  const Tensor expected = run(unlimited);
  for (const Bytes budget : {30'000, 40'000, 60'000}) {
    CAPTURE(budget);
    CHECK(same_bits(run(budget), expected));
  }
}

TEST_CASE("a larger budget never costs a loop more") {
  const auto run = [](Bytes budget) {
    Tape tape;
    const Var u = tape.parameter(wave(100));
    const Var other = tape.parameter(wave(3'000));
    Var y = other;
    for (int i = 0; i < 6; ++i) y = cumsum(sin(y), 0);
    const Var end =
        scan(u, 50, [](const Var& x, const StepNumber&) { return ring_step(x, mean(x)); });
    const Var loss = sum(end * end) * sum(y * y);
    return plan_backward(loss, {.memory_budget = budget, .threads = 1}).simulation.cost;
  };
  double before = std::numeric_limits<double>::infinity();
  for (Bytes budget = 130'000; budget < 260'000; budget += 10'000) {
    CAPTURE(budget);
    const double cost = run(budget);
    CHECK(cost <= before);
    before = cost;
  }
}

TEST_CASE("a while loop holds as many states as the budget leaves") {
  Tape tape;
  const Var u = tape.parameter(wave(100));
  int calls = 0;
  const WhileResult loop = while_loop(
      {&u, 1}, [](std::span<const Var> x, const StepNumber&) { return max(x[0]) > 0.2; },
      [&](std::span<const Var> x, std::span<const Var>, const StepNumber& n) {
        ++calls;
        return LoopStep{{n % 2 == 0 ? x[0] * 0.99 : sin(x[0])}};
      });
  const Gradients found = backward(sum(loop.state[0]), {.memory_budget = 32'000});
  CHECK(found.report().loops.at(0).states > 5);
  const auto steps = static_cast<std::uint32_t>(loop.steps.item<std::int64_t>());
  CHECK(steps > 50);
  // Online checkpointing takes less than one additional run of each step compared with a known
  // length.
  const auto least = binomial_forward_steps(steps, found.report().loops.at(0).states);
  CHECK(static_cast<std::uint64_t>(calls) < 2 * steps + least);
}

TEST_CASE("loops and checkpoints mix") {
  Tape tape;
  const Var u = tape.parameter(number(0.7));
  const Var rate = tape.parameter(number(1.5));
  SECTION("a body looks inside a checkpoint") {
    const Var end = scan(u, 3, [](const Var& x, const StepNumber&) {
      const Var y = checkpoint(
          [](const Var& z) {
            const Var w = z * 2;
            return w.item() > 0 ? w : z;
          },
          x);
      return y.item() > 1 ? y : x;
    });
    CHECK(end.item() == 0.7 * 2 * 2 * 2);
    CHECK(backward(end)[u].item() == 8);
  }
  SECTION("a body looks several times inside a checkpoint and outside") {
    const auto body = [&](const Var& x) {
      const Var y = checkpoint(
          [&](const Var& z) {
            const Var a = z * rate;
            const double first = a.item();
            const Var b = a + z;
            return b.item() > 0 && first > 0 && a.item() == first ? a * b : b;
          },
          x);
      return y.item() > 3 ? y * 0.5 : y;
    };
    const Var end = scan(u, 3, [&](const Var& x, const StepNumber&) { return body(x); });
    const Var expected = body(body(body(u)));
    CHECK(same_bits(end.value(), expected.value()));
    CHECK(backward(end)[u].item() == backward(expected)[u].item());
  }
  SECTION("the number of the step and values from outside are used there first") {
    const Var end = scan(u, 3, [&](const Var& x, const StepNumber& n) {
      return checkpoint(
          [&](const Var& z) {
            return scan(z + n.as(DType::f64), 2,
                        [&](const Var& y, const StepNumber&) { return y * rate; });
          },
          x);
    });
    double expected = 0.7;
    for (int n = 0; n < 3; ++n) expected = (expected + n) * 1.5 * 1.5;
    CHECK_THAT(end.item(), WithinRel(expected, 1e-5));
    CHECK_THAT(backward(end)[u].item(), WithinRel(std::pow(1.5, 6), 1e-5));
  }
  SECTION("what could not be found again is refused") {
    check_error(
        [&] {
          checkpoint(
              [](const Var& x, const Var& w) {
                const Var c = w * w;
                return scan(x, 4, [=](const Var& y, const StepNumber& n) {
                  return n % 2 == 0 ? y * c : y;
                });
              },
              u, rate);
        },
        {"[scan]", "checkpoint", "part of its state"});
  }
}

/// The gradient of a sum over independent trajectories.
struct Ensemble {
  Tape tape;
  Var speed = tape.parameter(number(0.2));
  Var loss;

  Ensemble() {
    for (int k = 0; k < 4; ++k) {
      const Var start = tape.constant(wave(200)) * (0.5 + 0.1 * k);
      const Var end =
          scan(start, 60, [this](const Var& x, const StepNumber&) { return ring_step(x, speed); });
      loss = k == 0 ? sum(end * end) : loss + sum(end * end);
    }
  }
};

TEST_CASE("loops that run at once: the same bits, within any budget, in memory of their own") {
  Ensemble one;
  const Gradients expected = backward(one.loss, {.threads = 1});
  Bytes all = 0;
  for (const int threads : {2, 3}) {
    Ensemble several;
    const Gradients found = backward(several.loss, {.threads = threads});
    CHECK(same_bits(found[several.speed], expected[one.speed]));
    all = found.report().measured_peak;
    CHECK(all > expected.report().measured_peak);
    CHECK(all <= 2 * expected.report().measured_peak);
    for (const Bytes budget : {all / 6, all / 3, all / 2, all - 1}) {
      CAPTURE(threads, budget);
      Ensemble within;
      const Gradients some = backward(within.loss, {.memory_budget = budget, .threads = threads});
      CHECK(some.report().measured_peak <= some.report().predicted_peak);
      CHECK(some.report().predicted_peak <= budget);
      CHECK(same_bits(some[within.speed], expected[one.speed]));
    }
  }
}

TEST_CASE("an inner loop keeps a budget of its own") {
  const auto run = [](const LoopOptions& inner) {
    Tape tape;
    const Var u = tape.parameter(wave(100));
    const Var end = scan(u, 4, [=](const Var& x, const StepNumber&) {
      return scan(
          x, 200,
          [](const Var& y, const StepNumber&) { return ring_step(0.9 * y, sigmoid(mean(y))); },
          inner);
    });
    const Gradients found = backward(sum(end));
    return std::pair(found[u].clone(), found.report().measured_peak);
  };
  const auto [expected, all] = run({});
  const auto [found, peak] = run({.memory_budget = 20'000});
  CHECK(std::isfinite(found.data<double>()[0]));
  CHECK(same_bits(found, expected));
  CHECK(all > 200 * 800);
  CHECK(peak < 60'000);
}

TEST_CASE("an eager tape with a budget goes on after a loop was differentiated with another") {
  Tape tape(eager({.memory_budget = 60'000}));
  const Var u = tape.parameter(wave(100));
  const Var end =
      scan(u, 100, [](const Var& x, const StepNumber&) { return ring_step(x, mean(x)); });
  const Var loss = sum(end);
  Tape lazily;
  const Var v = lazily.parameter(wave(100));
  const Var expected =
      scan(v, 100, [](const Var& x, const StepNumber&) { return ring_step(x, mean(x)); });
  CHECK(same_bits(backward(loss, {.memory_budget = 200'000})[u], backward(sum(expected))[v]));
  CHECK(same_bits(sum(end * end).value(), sum(expected * expected).value()));
}

TEST_CASE("runners of one program record the steps of a loop at the same time") {
  Var u;
  const auto record = [&](Tape& tape) {
    u = tape.parameter(wave(50));
    const Var rate = tape.parameter(number(0.9));
    Var total;
    for (int k = 0; k < 2; ++k) {
      const Var end = scan(u, 40, [=](const Var& x, const StepNumber& n) {
        return n % 3 == k ? ring_step(x, rate) : x * rate;
      });
      total = k == 0 ? sum(end) : total + sum(end);
    }
    return total;
  };
  Tape tape;
  const Var loss = record(tape);
  const Tensor expected = backward(loss, {.threads = 1})[u].clone();
  const Program program = Program::gradients(record, {.threads = 2});
  std::vector<Tensor> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] {
      Runner runner(program);
      for (int run = 0; run < 3; ++run) runner.run();
      found[i] = runner.gradients()[u].clone();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& gradient : found) CHECK(same_bits(gradient, expected));
}

}  // namespace
}  // namespace palimpsest::mixed_test
