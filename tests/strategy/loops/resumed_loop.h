#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

#include "tests/strategy/loops/loops.h"

namespace palimpsest::tests {

/// A loop with a journal, and how its gradient is computed.
struct ResumedLoop {
  bool is_while = false;
  bool is_spilled = false;
  bool is_half = false;
  bool is_recorded_again = false;
  bool is_eager = false;
  bool checks = false;
  bool measures_disk = false;
  Bytes loop_budget = unlimited;
  Bytes run_budget = unlimited;
  std::string tag = {};
  std::chrono::duration<double> record_every = std::chrono::seconds(0);
  std::int64_t steps = 60;
  std::int64_t cells = 20;
  double start = 0.3;   ///< changes the first state
  double speed = 0.2;   ///< a captured value
  double force = 0.01;  ///< changes the inputs
  double weight = 1;    ///< changes the given adjoints
  double slope = 0.1;   ///< a constant of the step
  int threads = 1;
  std::stop_token stop = {};
  std::shared_ptr<const ProgressFunction> progress = {};
  std::function<void(std::int64_t)> before_step = {};  ///< needs `is_recorded_again`
};

/// Ways that differ in their schedules and in what their records have.
inline ResumedLoop resumed_way(int way) {
  ResumedLoop loop;
  loop.is_while = way % 2 == 1;
  switch (way / 2) {
    case 0:
      loop.loop_budget = 7'600;
      loop.checks = true;
      break;
    case 1:
      loop.loop_budget = 65'000;
      loop.cells = 200;
      loop.is_spilled = true;
      break;
    case 2:
      break;  // all states
    case 3:
      loop.loop_budget = 7'000;
      loop.is_half = true;
      break;
    case 4:
      loop.is_recorded_again = true;
      loop.tag = "ring 1";
      loop.loop_budget = 24'000;
      loop.cells = 60;
      loop.steps = 30;
      break;
    case 5:
      loop.is_eager = true;
      loop.loop_budget = 7'600;
      break;
    case 6:
      loop.run_budget = 17'000;
      break;
    case 7:
      loop.is_eager = true;
      loop.loop_budget = 65'000;
      loop.cells = 200;
      loop.is_spilled = true;
      break;
    case 8:
      loop.loop_budget = 65'000;
      loop.cells = 200;
      loop.is_spilled = true;
      loop.measures_disk = true;
      break;
    default:
      throw std::runtime_error("no such way");
  }
  return loop;
}
/// The last two measure the disk, which takes half a second.
inline constexpr int resumed_ways = 16;
inline constexpr int all_resumed_ways = 18;

/// Runs `run` with a stop token and a progress function that stop it after so many steps of loops,
/// forward and backward together. Returns whether it was stopped.
template <class F>
bool is_stopped_after(int steps, F run) {
  std::stop_source stop;
  auto calls = std::make_shared<std::atomic<int>>(0);
  const auto progress = on_progress([stop, calls, steps](const RunProgress& at) mutable {
    if ((at.loop_steps > 0 || at.loop_step > 0) && ++*calls >= steps) stop.request_stop();
  });
  try {
    run(stop.get_token(), progress);
  } catch (const StoppedError&) {
    return true;
  }
  return false;
}

/// With a record after each step, if there is a journal.
inline LoopOptions recorded_often(LoopOptions options) {
  if (!options.resume.empty()) options.record_every = std::chrono::seconds(0);
  return options;
}

struct FoundByLoop {
  std::string bits;  ///< of the loss, of outputs, and of all gradients
  Report report;
};

/// Computes the loss and its gradients. `directory` is for the journal; empty for none.
inline FoundByLoop found_by_loop(const ResumedLoop& loop, const std::string& directory) {
  Tape tape = loop.is_eager ? Tape(eager()) : Tape(lazy());
  const std::int64_t cells = loop.cells;
  Tensor u = wave(cells);
  u.data<double>()[0] = loop.start;
  const Var first = tape.parameter(u);
  const Var speed = tape.parameter(number(loop.speed));
  const LoopOptions options{
      .memory_budget = loop.loop_budget,
      .spill = loop.is_spilled ? directory : "",
      .disk_costs = loop.is_spilled && !loop.measures_disk ? std::optional(DiskCosts{1e-3, 1e-3})
                                                           : std::nullopt,
      .codec = loop.is_half ? Codec::half : Codec::exact,
      .resume = directory,
      .tag = directory.empty() ? "" : loop.tag,
      .record_every = directory.empty() ? LoopOptions().record_every : loop.record_every,
      .check = loop.checks};
  const auto step = [&](const Var& x, const StepNumber& n) {
    if (loop.is_recorded_again) {
      const std::int64_t which = n;
      if (loop.before_step) loop.before_step(which);
      if (which % 3 == 2) return ring_step(x, speed) * 0.99;
    }
    return x - speed * (x - roll(x, 1, 0)) + loop.slope * sin(roll(x, -1, 0));
  };
  std::vector<Var> wanted{first, speed};
  Var loss;
  std::vector<Var> outputs;
  if (loop.is_while) {
    const Var start[] = {first, tape.constant(number(0))};
    const WhileResult made = while_loop(
        start,
        [&](std::span<const Var> xs, const StepNumber&) {
          return xs[1] < static_cast<double>(loop.steps);
        },
        [&](std::span<const Var> xs, std::span<const Var>, const StepNumber& n) {
          return LoopStep{{step(xs[0], n), xs[1] + 1.0}};
        },
        options);
    loss = sum(made.state[0] * made.state[0]);
  } else {
    Tensor given = Tensor::zeros(Shape{loop.steps, cells}, DType::f64);
    given.data<double>()[7] = loop.force;
    const Var forces = tape.parameter(given);
    wanted.push_back(forces);
    const LoopResult made = scan(
        {first}, loop.steps, {forces},
        [&](std::span<const Var> xs, std::span<const Var> inputs, const StepNumber& n) {
          const Var next = step(xs[0], n) + inputs[0];
          return LoopStep{.state = {next}, .outputs = {sum(next * next)}};
        },
        options);
    loss = sum(made.state[0] * made.state[0]) + sum(made.outputs[0]);
    outputs.push_back(made.outputs[0]);
  }
  loss = loss * loop.weight;
  FoundByLoop found;
  const auto add = [&](const Tensor& tensor) {
    const auto bytes = static_cast<std::size_t>(tensor.type().bytes());
    found.bits.append(reinterpret_cast<const char*>(tensor.raw()), bytes);
  };
  const Gradients gradients = backward(loss, {.memory_budget = loop.run_budget,
                                              .threads = loop.threads,
                                              .stop = loop.stop,
                                              .progress = loop.progress});
  for (const Var& each : wanted) add(gradients[each]);
  add(loss.value());
  for (const Var& each : outputs) add(each.value());
  found.report = gradients.report();
  return found;
}

/// Likewise, but stops it after so many steps. Returns whether it was stopped.
inline bool stop_loop_after(int steps, ResumedLoop loop, const std::string& directory) {
  return is_stopped_after(steps, [&](std::stop_token stop, auto progress) {
    loop.stop = std::move(stop);
    loop.progress = std::move(progress);
    found_by_loop(loop, directory);
  });
}

}  // namespace palimpsest::tests
