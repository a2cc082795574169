#include <atomic>
#include <filesystem>
#include <thread>

#include "checkpoint/chains/two_tier.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/spilling_ring.h"
#include "tests/temporary_directory.h"

namespace palimpsest::spill_test {
namespace {

/// The same loop, but until the wave is small.
struct Decay {
  Tape tape;
  Var u = tape.parameter(wave(100));
  WhileResult loop;
  Var loss;

  explicit Decay(double until, const LoopOptions& options) {
    loop = while_loop(
        {&u, 1}, [until](std::span<const Var> x, const StepNumber&) { return max(x[0]) > until; },
        [](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
          return LoopStep{{sin(x[0])}};
        },
        options);
    loss = sum(loop.state[0] * loop.state[0]);
  }
};

TEST_CASE("loops with a disk: the same bits, within any budget, and no file is left") {
  const TemporaryDirectory directory;
  constexpr std::int64_t steps = 300;
  Ring all(steps, {});
  const Gradients expected = backward(all.loss);
  for (const Bytes budget : {40'000, 46'000, 60'000, 90'000}) {
    for (const int threads : {1, 2}) {
      for (const bool compress : {false, true}) {
        CAPTURE(budget, threads, compress);
        const LoopOptions options{.spill = directory.path(),
                                  .spill_options = {.compress = compress},
                                  .disk_costs = nearly_free};
        Ring ring(steps, options);
        const Bytes room = budget + (compress ? 120'000 : 0);
        const Gradients found = backward(ring.loss, {.memory_budget = room, .threads = threads});
        CHECK(found.report().measured_peak <= found.report().predicted_peak);
        CHECK(found.report().predicted_peak <= found.report().budget);
        CHECK(same_bits(found[ring.u], expected[all.u]));
        CHECK(same_bits(found[ring.speed], expected[all.speed]));
        const Report::Loop& loop = found.report().loops.at(0);
        CHECK(loop.disk_writes > 0);
        CHECK(directory.files().empty());
      }
    }
  }
}

TEST_CASE("loops with a disk run as many steps as the best schedule of two tiers") {
  const TemporaryDirectory directory;
  bool any_disk = false;
  for (const DiskCosts costs : {DiskCosts{0, 0}, cheap, DiskCosts{40, 10}, DiskCosts{1e4, 1e4}}) {
    for (const std::int64_t steps : {1, 2, 3, 17, 60}) {
      for (const Bytes budget : {31'000, 38'000}) {
        CAPTURE(costs.write, steps, budget);
        Ring all(steps, {}, true);
        const Gradients expected = backward(all.loss);
        Ring ring(steps, {.memory_budget = budget, .spill = directory.path(), .disk_costs = costs},
                  true);
        ring.calls = 0;
        bool has_file = false;
        ring.before_step = [&](std::int64_t) { has_file |= !directory.files().empty(); };
        const Gradients found = backward(ring.loss);
        CHECK(same_bits(found[ring.u], expected[all.u]));
        const Report::Loop& loop = found.report().loops.at(0);
        const auto n = static_cast<std::uint32_t>(steps);
        CHECK(ring.calls == loop.forward_steps);
        CHECK(has_file == (loop.disk_writes > 1));
        if (loop.disk_writes > 0) {
          const TwoTierSchedule best(n, loop.states, costs);
          CHECK(loop.forward_steps == best.forward_steps() + 1);
          CHECK(loop.disk_writes == best.writes());
          CHECK(loop.disk_reads == best.reads());
          any_disk = true;
        } else {
          CHECK(loop.forward_steps == binomial_forward_steps(n, loop.states) + 1);
        }
      }
    }
  }
  CHECK(any_disk);
}

TEST_CASE("a directory makes no budget too small, and no loop dearer") {
  const TemporaryDirectory directory;
  const auto smallest = [&](const LoopOptions& options) {
    try {
      Ring ring(60, options);
      backward(ring.loss, {.memory_budget = 1});
    } catch (const BudgetError& error) {
      return error.smallest_feasible();
    }
    return Bytes{0};
  };
  const auto cost = [&](const LoopOptions& options, Bytes budget) {
    Ring ring(300, options);
    return plan_backward(ring.loss, {.memory_budget = budget}).simulation.cost;
  };
  for (const DiskCosts costs : {DiskCosts{0, 0}, cheap, DiskCosts{1e4, 1e4}}) {
    CAPTURE(costs.write);
    const LoopOptions options{.spill = directory.path(), .disk_costs = costs};
    CHECK(smallest(options) <= smallest({}) + 64);
    for (Bytes budget = 30'000; budget < 300'000; budget += 45'000) {
      CHECK(cost(options, budget + 64) <= cost({}, budget));
    }
  }
}

TEST_CASE("loops with a disk: lengths that nobody knows") {
  const TemporaryDirectory directory;
  for (const double until : {2.0, 0.9, 0.5, 0.2, 0.1}) {
    Decay all(until, {});
    const Gradients expected = backward(all.loss);
    for (const Bytes budget : {24'000, 60'000}) {
      CAPTURE(until, budget);
      Decay decay(until, {.spill = directory.path(), .disk_costs = cheap});
      const Gradients found = backward(decay.loss, {.memory_budget = budget});
      CHECK(same_bits(found[decay.u], expected[all.u]));
      CHECK(decay.loop.steps.item<std::int64_t>() == all.loop.steps.item<std::int64_t>());
      CHECK(found.report().measured_peak <= budget);
      CHECK(directory.files().empty());
    }
  }
}

TEST_CASE("loops with a disk: costs are measured where they are not given, before any work") {
  const TemporaryDirectory directory;
  Ring all(200, {});
  const Gradients expected = backward(all.loss);
  Ring ring(200, {.spill = directory.path()});
  const Gradients found = backward(ring.loss, {.memory_budget = 30'000});
  CHECK(same_bits(found[ring.u], expected[all.u]));
  CHECK(directory.files().empty());
  const std::string gone = directory.path() + "/gone";
  std::filesystem::create_directory(gone);
  Ring other(200, {.spill = gone});
  std::filesystem::remove(gone);
  CHECK_THROWS_AS(plan_backward(other.loss, {.memory_budget = 30'000}), FileError);
  CHECK_NOTHROW(plan_backward(other.loss));  // this needs no disk
}

TEST_CASE("loops with a disk nest, and have second derivatives") {
  const TemporaryDirectory directory;
  std::atomic<bool> has_file = false;  // concurrent loops call their bodies concurrently
  const auto run = [&](const LoopOptions& outer, const LoopOptions& inner) {
    Tape tape;
    const Var u = tape.parameter(wave(60));
    const Var end = scan(
        u, 40,
        [&](const Var& x, const StepNumber& n) {
          if (!directory.files().empty()) has_file = true;
          const Var start = n % 2 == 0 ? x : sin(x);
          return scan(
              start, 60, [](const Var& y, const StepNumber&) { return ring_step(y, mean(y)); },
              inner);
        },
        outer);
    const Var g = gradient(sum(end * end), u);
    return backward(sum(g * g))[u].clone();
  };
  const Tensor expected = run({}, {});
  const LoopOptions inner{
      .memory_budget = 40'000, .spill = directory.path(), .disk_costs = nearly_free};
  const LoopOptions outer{.memory_budget = 218'000,
                          .step_memory = 200'000,
                          .spill = directory.path(),
                          .disk_costs = nearly_free};
  CHECK(same_bits(run({}, inner), expected));
  CHECK(same_bits(run(outer, inner), expected));
  CHECK(has_file);
  CHECK(directory.files().empty());
}

TEST_CASE("loops with a disk: two derivatives of one loop, in several threads") {
  const TemporaryDirectory directory;
  const auto run = [&](const LoopOptions& own, const RunOptions& options) {
    Tape tape;
    const Var u = tape.parameter(wave(100));
    const Var c = tape.parameter(number(0.2));
    const Var end =
        scan(u, 40, [&](const Var& x, const StepNumber&) { return ring_step(x, c); }, own);
    const Var both[] = {gradient(sum(end * end), u), gradient(sum(sin(end)), c)};
    evaluate(both, options);
    return std::pair(both[0].value().clone(), both[1].value().clone());
  };
  const auto expected = run({}, {});
  for (int k = 0; k < cases(20); ++k) {
    const auto found = run({.spill = directory.path(), .disk_costs = cheap},
                           {.memory_budget = 40'000, .threads = 2});
    CHECK(same_bits(found.first, expected.first));
    CHECK(same_bits(found.second, expected.second));
    CHECK(directory.files().empty());
  }
}

/// A scan with inputs, outputs, random numbers and a state of several dtypes.
struct Mixed {
  Tape tape;
  Var u = tape.parameter(wave(40));
  Var half = tape.parameter(wave(30, DType::bf16));
  Var forcing = tape.parameter(wave(80));
  Var loss;

  explicit Mixed(const LoopOptions& options) {
    const Var state[] = {u, half, tape.constant(Tensor::zeros({3}, DType::i64)),
                         u.tape().constant(Tensor::zeros({0}, DType::f64))};
    const LoopResult made = scan(
        state, 80, {&forcing, 1},
        [](std::span<const Var> x, std::span<const Var> given, const StepNumber&) {
          const Var next = ring_step(x[0], mean(x[0])) + given[0] +
                           normal(x[0].tape(), {40}, 0, 0.01, DType::f64);
          return LoopStep{{next, sin(x[1]), x[2] + x[2], x[3]}, {sum(next * next)}};
        },
        options);
    loss = sum(made.outputs[0]) + sum(made.state[0]) + sum(cast(made.state[1], DType::f64));
  }
};

TEST_CASE("loops with a disk: inputs, outputs, random numbers and states of several dtypes") {
  const TemporaryDirectory directory;
  Mixed all({});
  const Gradients expected = backward(all.loss);
  for (const bool compress : {false, true}) {
    Mixed mixed({.memory_budget = 31'000 + (compress ? 200'000 : 0),
                 .spill = directory.path(),
                 .spill_options = {.compress = compress},
                 .disk_costs = nearly_free});
    const Gradients found = backward(mixed.loss);
    if (!compress) CHECK(found.report().loops.at(0).disk_writes > 0);
    CHECK(same_bits(found[mixed.u], expected[all.u]));
    CHECK(same_bits(found[mixed.half], expected[all.half]));
    CHECK(same_bits(found[mixed.forcing], expected[all.forcing]));
  }
}

TEST_CASE("loops with a disk: programs run again and at once, eager tapes, checkpoints") {
  const TemporaryDirectory directory;
  const LoopOptions options{
      .memory_budget = 31'000, .spill = directory.path(), .disk_costs = nearly_free};
  Ring all(100, {});
  const Gradients expected = backward(all.loss);
  {
    Var u;
    const Program program = Program::gradients([&](Tape& tape) {
      u = tape.parameter(wave(100));
      const Var speed = tape.parameter(number(0.2));
      const Var end = scan(
          u, 100, [&](const Var& x, const StepNumber&) { return ring_step(x, speed); }, options);
      return sum(end * end);
    });
    std::atomic<int> right = 0;
    const auto run = [&] {
      Runner runner(program);
      for (int k = 0; k < 3; ++k) {
        runner.run();
        if (same_bits(runner.gradients()[u], expected[all.u])) ++right;
      }
    };
    std::thread other(run);
    run();
    other.join();
    CHECK(right == 6);
  }
  {
    Tape tape(eager());
    const Var u = tape.parameter(wave(100));
    const Var speed = tape.parameter(number(0.2));
    const Var end =
        scan(u, 100, [&](const Var& x, const StepNumber&) { return ring_step(x, speed); }, options);
    CHECK(same_bits(backward(sum(end * end))[u], expected[all.u]));
  }
  {
    Tape tape;
    const Var u = tape.parameter(wave(100));
    const Var speed = tape.parameter(number(0.2));
    const Var end = checkpoint(
        [&](const Var& y) {
          return scan(
              y, 100, [&](const Var& x, const StepNumber&) { return ring_step(x, speed); },
              options);
        },
        u);
    CHECK(same_bits(backward(sum(end * end))[u], expected[all.u]));
  }
  CHECK(directory.files().empty());
}

TEST_CASE("a step that does nothing may be kept on disk") {
  const TemporaryDirectory directory;
  Tape tape;
  const Var u = tape.parameter(wave(1'000));
  const Var end =
      scan(u, 100, [](const Var& x, const StepNumber&) { return x; }, {.spill = directory.path()});
  const Gradients found = backward(sum(end * end), {.memory_budget = 100'000});
  CHECK(same_bits(found[u], backward(sum(u * u))[u]));
}

}  // namespace
}  // namespace palimpsest::spill_test
