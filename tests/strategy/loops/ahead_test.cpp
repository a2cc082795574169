#include <atomic>
#include <chrono>
#include <thread>

#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"
#include "tests/temporary_directory.h"

namespace palimpsest {
namespace {

/// Kernels too short to be divided among threads, of which a step takes a while.
Var slow_step(const Var& u, const Var& speed) {
  Var x = ring_step(u, speed);
  for (int i = 0; i < 3; ++i) x = cumsum(sin(x), 0) * 0.01;
  return x;
}

constexpr std::int64_t cells = 300;
constexpr std::int64_t steps = 500;

/// A loop of known length, or one that nobody knows.
struct Slow {
  Tape tape;
  Var u = tape.parameter(wave(cells));
  Var speed = tape.parameter(number(0.2));
  Var loss;

  Slow(bool is_known, const LoopOptions& options) {
    Var end;
    if (is_known) {
      const auto step = [this](const Var& x, const StepNumber&) { return slow_step(x, speed); };
      end = scan(u, steps, step, options);
    } else {
      const Var start[] = {u, tape.constant(number(0))};
      const WhileResult loop = while_loop(
          start,
          [](std::span<const Var> x, const StepNumber&) {
            return x[1] < static_cast<double>(steps);
          },
          [this](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
            return LoopStep{{slow_step(x[0], speed), x[1] + 1.0}};
          },
          options);
      end = loop.state[0];
    }
    loss = sum(end * end);
  }
};

TEST_CASE("states made ahead: the same bits, within any budget") {
  const TemporaryDirectory directory;
  for (const bool is_known : {true, false}) {
    const Slow all(is_known, {});
    const Gradients expected = backward(all.loss, {.threads = 1});
    for (const bool spill : {false, true}) {
      LoopOptions options{.check = true};
      if (spill) options.spill = directory.path();
      options.disk_costs = DiskCosts{1.5, 1.5};
      for (const int threads : {1, 2, 3}) {
        for (const Bytes states : {40, 80, 160}) {
          CAPTURE(is_known, spill, threads, states);
          const Slow slow(is_known, options);
          const Bytes budget = states * cells * 8;
          const Gradients found =
              backward(slow.loss, {.memory_budget = budget, .threads = threads});
          CHECK(found.report().measured_peak <= found.report().predicted_peak);
          CHECK(found.report().predicted_peak <= budget);
          CHECK(same_bits(found[slow.u], expected[all.u]));
          CHECK(same_bits(found[slow.speed], expected[all.speed]));
          const Report::Loop& loop = found.report().loops.at(0);
          CHECK((loop.ahead > 0) == (threads > 1));
          if (is_known && states == 40) CHECK((loop.disk_writes > 0) == spill);
        }
      }
    }
  }
}

TEST_CASE("states made ahead: as a loop's own budget allows") {
  const LoopOptions options{.memory_budget = 100 * cells * 8};
  const Slow one(true, options);
  const Slow two(true, options);
  const Gradients expected = backward(one.loss, {.threads = 1});
  const Gradients found = backward(two.loss, {.threads = 2});
  CHECK(expected.report().loops.at(0).ahead == 0);
  CHECK(found.report().loops.at(0).ahead > 0);
  CHECK(same_bits(found[two.u], expected[one.u]));
  constexpr Bytes others = 3 * cells * 8;
  CHECK(found.report().measured_peak <= options.memory_budget + others);
}

TEST_CASE("states made ahead: not where that is of no use") {
  const Slow all(true, {});
  CHECK(backward(all.loss, {.threads = 2}).report().loops.at(0).ahead == 0);
  Tape tape;
  const Var u = tape.parameter(wave(cells));
  const Var speed = tape.parameter(number(0.2));
  const Var end = scan(u, steps, [&](const Var& x, const StepNumber& n) {
    return slow_step(n % 7 == 0 ? x * 0.9 : x, speed);
  });
  const Gradients again = backward(sum(end), {.memory_budget = 160 * cells * 8, .threads = 2});
  CHECK(again.report().loops.at(0).recorded_again);
  CHECK(again.report().loops.at(0).ahead == 0);
}

std::atomic<int> reversing = 0;
std::atomic<bool> has_met = false;

/// A copy whose adjoint waits a moment until another thread makes a copy, once.
void copy(const KernelCall& call) {
  if (reversing > 0) has_met = true;
  const double* const from = call.input().as<double>();
  std::copy(from, from + call.input().elements(), call.output().as<double>());
}
void wait_and_copy(const KernelCall& call) {
  using namespace std::chrono_literals;
  const int depth = reversing++;
  const auto end = std::chrono::steady_clock::now() + 50ms;
  while (!has_met && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  reversing = depth;
  const double* const from = call.input().as<double>();
  std::copy(from, from + call.input().elements(), call.output().as<double>());
}
const Operation waiting_operation{
    .name = "waiting", .formula = "y = x", .summary = "", .compute = wait_and_copy};
const Operation copying_operation{
    .name = "copying",
    .formula = "y = x",
    .summary = "",
    .compute = copy,
    .vjp = [](const Pullback& p) {
      const Var adjoint = p.adjoint(0);
      const ValueType type = adjoint.type();
      p.set(0, p.tape().record(waiting_operation, {&adjoint, 1}, {&type, 1}, {}, p.where()));
    }};

TEST_CASE("states are made ahead by another thread") {
  if (std::thread::hardware_concurrency() < 2) return;  // nobody to meet
  Tape tape;
  const Var u = tape.parameter(wave(cells));
  const Var speed = tape.parameter(number(0.2));
  const Var end = scan(u, steps, [&](const Var& x, const StepNumber&) {
    const ValueType type = x.type();
    const Var y = x.tape().record(copying_operation, {&x, 1}, {&type, 1}, {}, Where::current());
    return slow_step(y, speed);
  });
  const Gradients found = backward(sum(end), {.memory_budget = 160 * cells * 8, .threads = 2});
  CHECK(found.report().loops.at(0).ahead > 0);
  CHECK(has_met);
}

}  // namespace
}  // namespace palimpsest
