#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include "checkpoint/chains/binomial.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::recorded_steps_test {
namespace {

/// Depends on the step number and on values.
Var turning_step(const Var& u, const Var& speed, std::int64_t n) {
  const Var next =
      n % 3 == 1 ? ring_step(u, speed) : u + std::sin(0.1 * static_cast<double>(n)) * speed;
  return next.value().at(0) > 0.4 ? next * 0.9 : exp(0.1 * next);
}

TEST_CASE("steps that differ are recorded one by one") {
  for (const Bytes budget : {unlimited, Bytes{30'000}}) {
    Tape unrolled;
    const Var u = unrolled.parameter(wave(100));
    const Var speed = unrolled.parameter(number(0.2));
    Var state = u;
    for (std::int64_t n = 0; n < 17; ++n) state = turning_step(state, speed, n);
    const Gradients expected = backward(sum(state * state));

    Tape tape;
    const Var v = tape.parameter(wave(100));
    const Var c = tape.parameter(number(0.2));
    int calls = 0;
    const Var end = scan(v, 17, [&](const Var& x, const StepNumber& n) {
      ++calls;
      return turning_step(x, c, n);
    });
    const Gradients found = backward(sum(end * end), {.memory_budget = budget});
    CHECK(calls > 17);
    CHECK(same_bits(found.loss(), expected.loss()));
    CHECK(same_bits(found[v], expected[u]));
    CHECK(same_bits(found[c], expected[speed]));
    CHECK(found.report().measured_peak <= budget);
  }
}

TEST_CASE("the body of equal steps is called once") {
  Tape tape;
  const Var u = tape.parameter(wave(10));
  int calls = 0;
  const Var end = scan(u, 50, [&](const Var& x, const StepNumber& n) {
    ++calls;
    return x * 0.99 + 0.001 * n.as(DType::f64);
  });
  backward(sum(end));
  CHECK(calls == 1);
}

TEST_CASE("no more steps are run than the binomial optimum for the states held") {
  for (const std::int64_t steps : {1, 2, 5, 30}) {
    for (const Bytes budget : {Bytes{12'000}, Bytes{15'000}, Bytes{22'000}, unlimited}) {
      CAPTURE(steps, budget);
      Tape tape;
      const Var u = tape.parameter(wave(100));
      std::uint64_t calls = 0;
      const Var end = scan(u, steps, [&](const Var& x, const StepNumber& n) {
        ++calls;
        return n % 2 == 0 ? x * 0.99 : sin(x);
      });
      CHECK(calls == 1);
      const Gradients found = backward(sum(end), {.memory_budget = budget});
      REQUIRE(found.report().loops.size() == 1);
      const Report::Loop& loop = found.report().loops[0];
      CHECK(loop.steps == steps);
      CHECK(loop.recorded_again);
      CHECK(loop.states <= steps);
      if (budget == unlimited) CHECK(loop.states == steps);
      const std::uint64_t optimum =
          binomial_forward_steps(static_cast<std::uint32_t>(steps), loop.states);
      CHECK(loop.forward_steps == optimum + 1);
      CHECK(calls - 1 == loop.forward_steps);
    }
  }
}

TEST_CASE("second derivatives of steps that are recorded one by one") {
  const auto f = [](std::span<const Var> xs) {
    return scan(xs[0], 5, [xs](const Var& x, const StepNumber& n) {
      return n % 2 == 0 ? sin(x * xs[1]) : x * xs[1] + x * x;
    });
  };
  const Tensor inputs[] = {wave(3), wave(3)};
  const GradcheckResult result = gradcheck(f, inputs);
  INFO(result.message);
  CHECK(result.passed);
}

TEST_CASE("random numbers of a loop differ from step to step and come again") {
  Tape tape;
  const Var u = tape.parameter(Tensor::ones(Shape{1000}, DType::f64));
  const LoopResult loop =
      scan({&u, 1}, 10, {}, [](std::span<const Var> s, std::span<const Var>, const StepNumber&) {
        const Var next = dropout(s[0], 0.1);
        return LoopStep{{next}, {sum(next)}};
      });
  const Gradients all = backward(sum(loop.state[0]));
  const Gradients some = backward(sum(loop.state[0]), {.memory_budget = 100'000});
  CHECK(same_bits(all[u], some[u]));
  // Dropout is linear and starts from ones, so the state equals its own derivative.
  CHECK(same_bits(all[u], loop.state[0].value()));
  const Tensor left = loop.outputs[0].value();
  for (std::size_t n = 1; n < 10; ++n) CHECK(left.data<double>()[n] != left.data<double>()[n - 1]);
}

TEST_CASE("random numbers of a loop in run k are those of a tape that was cleared k times") {
  const auto step = [](const Var& x, const StepNumber&) { return dropout(x, 0.5) + 0.1; };
  const auto by_number = [step](const Var& x, const StepNumber& n) {
    return std::int64_t(n) == 1 ? step(x, n) * 0.5 : step(x, n);
  };
  const std::function<Var(const Var&)> loops[] = {
      [&](const Var& u) { return scan(u, 3, step); },
      [&](const Var& u) { return scan(u, 3, by_number); },
      [&](const Var& u) {
        return while_loop(u, [](const Var& x) { return sum(x) < 115.0; }, step, {.max_steps = 99});
      },
  };
  for (const auto& loop : loops) {
    Var y;
    Runner runner(Program::values([&](Tape& tape) {
      y = loop(tape.parameter(Tensor::ones(Shape{100}, DType::f64)));
      return std::vector<Var>{y};
    }));
    for (std::uint32_t run = 0; run < 3; ++run) {
      runner.run();
      Tape tape;
      tape.set_generation(run);
      const Var again = loop(tape.parameter(Tensor::ones(Shape{100}, DType::f64)));
      CHECK(same_bits(runner.value(y), again.value()));
    }
  }
}

TEST_CASE("a body sees the same random numbers when it is recorded and when it runs") {
  Tape tape;
  tape.set_generation(1);
  const Var u = tape.parameter(Tensor::ones(Shape{100}, DType::f64));
  std::vector<double> seen;
  const Var y = scan(u, 1, [&](const Var& x, const StepNumber&) {
    const Var next = dropout(x, 0.5);
    seen.push_back(sum(next).item<double>());
    return next;
  });
  seen.push_back(sum(y).item<double>());
  REQUIRE(seen.size() == 3);
  CHECK(seen[0] == seen[2]);
  CHECK(seen[1] == seen[2]);
}

TEST_CASE("so does the body of a loop in a loop") {
  Tape tape;
  tape.set_generation(2);
  const Var u = tape.parameter(Tensor::ones(Shape{100}, DType::f64));
  std::vector<double> inner, outer;  // as they are seen, in each recording
  const Var y = scan(u, 3, [&](const Var& x, const StepNumber&) {
    const Var made = scan(x, 1, [&](const Var& v, const StepNumber&) {
      const Var next = dropout(v, 0.5);
      inner.push_back(sum(next).item<double>());
      return next;
    });
    outer.push_back(sum(made).item<double>());
    return made;
  });
  outer.push_back(sum(y).item<double>());
  CHECK(outer.back() == outer[outer.size() - 2]);
  // Each number that a recording sees is one that a run makes.
  for (const double seen : inner) CHECK(std::ranges::find(outer, seen) != outer.end());
}

TEST_CASE("a loop says what is wrong with its body") {
  Tape tape;
  const Var u = tape.parameter(wave(4));
  const auto same = [](const Var& x, const StepNumber&) { return x; };
  check_error([&] { scan(u, -1, same); }, {"[scan]", "-1 steps", "give a number"});
  check_error([&] { scan(u, 3, [](const Var& x, const StepNumber&) { return sum(x); }); },
              {"[scan]", "value 0 of the state", "f64 ()", "f64 (4)", "recorded_steps_test.cpp"});
  check_error(
      [&] { scan(u, 3, [](const Var& x, const StepNumber&) { return cast(x, DType::f32); }); },
      {"[scan]", "f32 (4)"});
  check_error(
      [&] {
        scan(u, 3, [&](const Var& x, const StepNumber&) { return x * tape.parameter(wave(4)); });
      },
      {"[scan]", "parameter", "record it before"});
  check_error(
      [&] {
        scan({&u, 1}, 3, {&u, 1},
             [](std::span<const Var> s, std::span<const Var>, const StepNumber&) {
               return LoopStep{{s[0]}};
             });
      },
      {"[scan]", "input 0", "3 steps", "first axis"});
  check_error(
      [&] {
        scan({&u, 1}, 3, {}, [](std::span<const Var> s, std::span<const Var>, const StepNumber&) {
          return LoopStep{{s[0]}, {reshape(s[0], {1, 1, 1, 1, 1, 1, 2, 2})}};
        });
      },
      {"[scan]", "9 axes", "at most 8", "reshape it", "recorded_steps_test.cpp"});
  const Var w = tape.parameter(wave(4));
  const Var late =
      scan(u, 3, [&](const Var& x, const StepNumber& n) { return n == 2 ? x * w : x; });
  check_error([&] { late.value(); }, {"[scan]", "step 2 uses parameter", "LoopOptions::captured"});
  const Var named =
      scan(u, 3, [&](const Var& x, const StepNumber& n) { return n == 2 ? x * w : x; },
           {.captured = {w}});
  CHECK(same_bits(named.value(), (u * w).value()));
  Tape other;
  const Var foreign = other.parameter(wave(4));
  CHECK_THROWS_AS(scan(u, 3, [&](const Var& x, const StepNumber&) { return x * foreign; }),
                  TapeError);
  CHECK(same_bits(scan(u, 3, same).value(), u.value()));  // the tape remains usable
}

/// Calls of `leak` in a body keep what it recorded.
using Leaky = std::function<void(const Var& x, const std::function<Var(const Var&)>& leak)>;

TEST_CASE("a Var leaked from the body of a loop is an error when it is used") {
  const Leaky loops[] = {
      [](const Var& x, const auto& leak) {
        scan(x, 2, [&](const Var& a, const StepNumber&) { return leak(a); });
      },
      [](const Var& x, const auto& leak) {
        scan(x, 2, [&](const Var& a, const StepNumber& n) { return n == 0 ? leak(a) : a; }).value();
      },
      [](const Var& x, const auto& leak) {
        const auto goes_on = [](const Var& a) { return sum(square(a)) > 0.5; };
        while_loop(x, goes_on, [&](const Var& a, const StepNumber&) { return leak(a); });
      },
  };
  for (const Leaky& loop : loops) {
    Tape tape;
    const Var x = tape.parameter(wave(4));
    std::vector<Var> leaked;
    loop(x, [&](const Var& a) {
      leaked.push_back(tanh(a));
      return leaked.back() * 0.5;
    });
    REQUIRE_FALSE(leaked.empty());
    for (const Var& each : leaked) {
      check_error([&] { each.value(); }, {"a function given to checkpoint(), scan()"});
      CHECK_THROWS_AS(each.shape(), TapeError);
      CHECK_THROWS_AS(each + each, TapeError);
      CHECK_THROWS_AS(each + x, TapeError);
      CHECK_THROWS_AS(backward(sum(each)), TapeError);
    }
    CHECK_NOTHROW(backward(sum(x * x)));
  }
}

TEST_CASE("a Var leaked from a body with an inner loop has no value") {
  Tape tape;
  const Var x = tape.parameter(wave(4));
  Var leaked;
  const Var y = scan(x, 2, [&](const Var& a, const StepNumber&) {
    const Var b = leaked = tanh(a);
    const auto f = [b](const Var& c, const StepNumber& n) { return n == 2 ? c * b : c; };
    return scan(a, 3, f, {.captured = {b}});
  });
  check_error([&] { leaked.value(); }, {"[var]", "loop body", "recorded_steps_test.cpp"});
  CHECK_THROWS_AS(leaked + x, TapeError);
  CHECK_THROWS_AS(evaluate(leaked), TapeError);
  // The inner body reads it whenever a step is recorded.
  const Var z = x * tanh(x);
  CHECK(same_bits(y.value(), (z * tanh(z)).value()));
  CHECK_NOTHROW(backward(sum(y)));
}

/// A step that keeps functions of the user, which may need its tape again.
using KeepingStep = std::function<Var(const Var& u, const std::function<void(const Var&)>& keep)>;

TEST_CASE("the engine rejects a Var kept from a body that keeps functions of the user") {
  const KeepingStep steps[] = {
      [](const Var& u, const auto& keep) {
        keep(sum(u * u));
        return checkpoint([](const Var& q) { return sin(q); }, u);
      },
      [](const Var& u, const auto& keep) {
        keep(sum(u * u));
        return scan(u, 2, [](const Var& v, const StepNumber&) { return sin(v); });
      },
  };
  for (const KeepingStep& step : steps) {
    Tape tape;
    const Var x = tape.parameter(wave(4));
    std::vector<Var> seen;
    const auto keep = [&](const Var& v) { seen.push_back(v); };
    const Var y = scan(x, 3, [&](const Var& u, const StepNumber&) { return step(u, keep); });
    REQUIRE(seen.size() == 1);
    const std::initializer_list<std::string> words{"[var]", "argument of a loop body",
                                                   "return what you need"};
    for (const Bytes budget : {unlimited, 100_KiB}) {
      const RunOptions options{.memory_budget = budget};
      check_error([&] { backward(seen[0], options); }, words);
      check_error([&] { evaluate(seen, options); }, words);
      check_error([&] { plan_backward(seen[0], options); }, words);
      check_error([&] { forecast_values(seen, options); }, words);
    }
    check_error([&] { seen[0].value(); }, words);
    CHECK_NOTHROW(backward(sum(y)));
  }
}

TEST_CASE("a nested loop whose steps differ captures only what the enclosing loop recorded") {
  enum class From { outside, state, enclosing, found };
  const auto recorded = [](Tape& tape, From from) {
    const Var w = tape.parameter(wave(4));
    return scan(tape.parameter(wave(4)), 3, [&tape, w, from](const Var& x, const StepNumber&) {
      // The leaf that `find_leaf` returns belongs to the enclosing step.
      const Var weight = from == From::enclosing ? w * 1.0
                         : from == From::found   ? tape.find_leaf(w.value())
                                                 : w;
      const auto factor = [](std::int64_t n) { return 1 + 0.1 * static_cast<double>(n); };
      if (from == From::state) {
        const std::vector<Var> end =
            scan({x, w}, 4, [factor](std::span<const Var> state, const StepNumber& n) {
              return std::vector<Var>{sin(state[0] * state[1]) * factor(n), state[1]};
            });
        return end[0];
      }
      return scan(x, 4, [weight, factor](const Var& u, const StepNumber& n) {
        return sin(u * weight) * factor(n);
      });
    });
  };
  Tape refused;
  check_error([&] { recorded(refused, From::outside); },
              {"[scan]", "a loop in a step of another loop", "uses parameter", "part of the state",
               "recorded_steps_test.cpp"});
  Tape tape;
  const Gradients expected = backward(sum(recorded(tape, From::enclosing)));
  for (const From from : {From::state, From::found}) {
    Tape other;
    const Gradients found = backward(sum(recorded(other, from)));
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(same_bits(found.entries()[i].value, expected.entries()[i].value));
      CHECK(same_bits(found.entries()[i].gradient, expected.entries()[i].gradient));
    }
  }
}

TEST_CASE("steps of two loops are recorded at once, in a step of another loop") {
  const auto gradient_of = [](bool meets, const RunOptions& options) {
    std::atomic<int> inside = 0;
    const auto step = [&inside, meets](const Var& in, const StepNumber& number) {
      const double factor = 1 + 0.1 * static_cast<double>(std::int64_t{number});
      // Waits a little for the other loop, which may run on another thread or after this one.
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(meets ? 20 : 0);
      ++inside;
      while (inside < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      --inside;
      return tanh(in * factor);
    };
    Tape tape;
    const Var x = tape.parameter(wave(1000));
    const auto both = [step](const Var& in, const StepNumber&) {
      return scan(in, 2, step) + scan(in * 2.0, 2, step);
    };
    return backward(sum(scan(x, 2, both)), options)[x];
  };
  CHECK(same_bits(gradient_of(true, {.threads = 2}), gradient_of(false, {.threads = 1})));
}

}  // namespace
}  // namespace palimpsest::recorded_steps_test
