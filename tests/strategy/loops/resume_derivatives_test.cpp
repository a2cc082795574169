// Journals of loops that a run differentiates several times, and of several loops.
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/loops.h"
#include "tests/temporary_directory.h"

namespace palimpsest::resume_derivatives_test {
namespace {

/// Ends a run as a kill does: without another record.
struct Ended : std::exception {};

/// How a run goes on and ends.
struct Process {
  std::string directory = {};
  int ends_after = 0;  ///< steps of loops; 0: it ends by itself
  Bytes budget = unlimited;
  bool stops = false;  ///< with a last record
};

using Program = std::function<Tensor(const Process&, const RunOptions&)>;

/// The result; undefined if the process was ended.
Tensor run(const Program& program, const Process& process) {
  std::stop_source stop;
  const auto counted = std::make_shared<std::atomic<int>>(0);
  RunOptions options{.memory_budget = process.budget, .threads = 1};
  options.stop = stop.get_token();
  options.progress = on_progress([=](const RunProgress& at) mutable {
    if (at.loop_steps == 0 && at.loop_step == 0) return;
    if (++*counted != process.ends_after) return;
    if (!process.stops) throw Ended();
    stop.request_stop();
  });
  try {
    return program(process, options);
  } catch (const Ended&) {
  } catch (const StoppedError&) {
  }
  return {};
}

LoopOptions with_journal(const Process& process, LoopOptions options) {
  options.resume = process.directory;
  if (!process.directory.empty()) options.record_every = std::chrono::seconds(0);
  return options;
}

Var ring(const Var& u, std::int64_t steps, const LoopOptions& options) {
  return scan(
      u, steps, [](const Var& x, const StepNumber&) { return ring_step(x, mean(x)); }, options);
}

/// Ends after some numbers of steps, continues, and compares with a whole run.
void check_continued(const Program& program, Process process, std::initializer_list<int> ends) {
  // A rounded state depends on how many are held, which a journal may change.
  const TemporaryDirectory of_whole(quick_folder());
  process.directory = of_whole.path();
  const Tensor whole = run(program, process);
  for (const int end : ends) {
    for (const bool stops : {false, true}) {
      CAPTURE(end, stops);
      const TemporaryDirectory directory(quick_folder());
      process.directory = directory.path();
      process.ends_after = end;
      process.stops = stops;
      CHECK(!run(program, process).defined());
      process.ends_after = 0;
      CHECK(same_bits(run(program, process), whole));
      CHECK(same_bits(run(program, process), whole));  // the results of the finished loops
    }
  }
}

TEST_CASE("loops, resume: two derivatives of a loop whose forward part runs again between them") {
  const Program program = [](const Process& process, const RunOptions& options) {
    Tape tape(lazy(options));
    const Var u = tape.parameter(wave(20));
    const Var x = ring(u, 12, with_journal(process, {.memory_budget = 12'000}));
    const Var a = gradient(sum(x * x), {u})[0];
    Var y = a;
    for (int i = 0; i < 3; ++i) {
      Var m = reshape(y, {20, 1}) * reshape(sin(y), {1, 20});
      m = sin(m) * m;
      y = sum(m * sin(m), 0) * 0.01;
    }
    return gradient(sum(sin(x) * y), {u})[0].value().clone();
  };
  check_continued(program, {.budget = 13'500}, {5, 15, 25, 35, 45, 55, 65, 70});
}

TEST_CASE("loops, resume: a loop that is derived from another has costs of the disk of its own") {
  const Program program = [](const Process& process, const RunOptions& options) {
    Tape tape(lazy(options));
    const Var u = tape.parameter(wave(200));
    LoopOptions own = with_journal(process, {.memory_budget = 65'000});
    own.spill = process.directory.empty() ? quick_folder() : process.directory;
    const Var start[] = {u, tape.constant(number(0))};
    const auto made = while_loop(
        start, [](std::span<const Var> x, const StepNumber&) { return x[1] < 60.0; },
        [](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
          return LoopStep{{ring_step(x[0], mean(x[0])), x[1] + 1.0}};
        },
        own);
    const Var g = gradient(sum(square(made.state[0])), {u})[0];
    return gradient(sum(g * tape.constant(wave(200))), {u})[0].value().clone();
  };
  check_continued(program, {}, {80, 150});
}

TEST_CASE("loops, resume: a loop that has ended keeps its number of rounded states") {
  const Program program = [](const Process& process, const RunOptions& options) {
    Tape tape(lazy(options));
    const Var u = tape.parameter(wave(200));
    const LoopOptions own = with_journal(process, {.codec = Codec::half});
    const Var x = ring(tanh(ring(u, 60, own)), 50, own);
    return backward(sum(x * x), options)[u].clone();
  };
  check_continued(program, {.budget = 30'000}, {234, 312});
}

TEST_CASE("loops, resume: which derivative a step takes of a loop in it belongs to the identity") {
  const auto program_by = [](std::size_t by) -> Program {
    return [by](const Process& process, const RunOptions& options) {
      Tape tape(lazy(options));
      const Var u = tape.parameter(wave(10));
      const Var v = tape.parameter(wave(10));
      const auto x = scan(
          {u, v}, 12,
          [by](std::span<const Var> s, const StepNumber&) {
            const auto in = scan({s[0], s[1]}, 3, [](std::span<const Var> q, const StepNumber&) {
              return std::vector<Var>{sin(q[0]) * q[1], sin(q[1]) * q[0]};
            });
            const Var g = gradient(sum(in[0] * in[1]), {s[by]})[0];
            return std::vector<Var>{sin(s[0] + g), cos(s[1])};
          },
          with_journal(process, {}));
      return backward(sum(x[0] * x[1]), options)[u].clone();
    };
  };
  const Tensor expected = run(program_by(1), {});
  {
    const TemporaryDirectory directory(quick_folder());
    run(program_by(0), {directory.path(), 8});
    check_error([&] { run(program_by(1), {directory.path()}); },
                {"is of another run", "scan_adjoint"});
  }
  const TemporaryDirectory directory(quick_folder());
  run(program_by(0), {directory.path()});
  CHECK(same_bits(run(program_by(1), {directory.path()}), expected));
}

TEST_CASE("loops, resume: what a refused plan gave to a loop in a step is not its identity") {
  const TemporaryDirectory directory(quick_folder());
  bool plans = true;
  const Program program = [&](const Process& process, const RunOptions& options) {
    Tape tape(lazy(options));
    const Var u = tape.parameter(wave(400));
    const Var x = scan(
        u, 12,
        [](const Var& x, const StepNumber&) {
          const Var s = scan(stop_gradient(x), 5, [](const Var& y, const StepNumber&) {
            std::vector<Var> v{cumsum(y, 0) * 1e-3};
            for (int i = 0; i < 6; ++i) v.push_back(cumsum(sin(v.back()), 0) * 1e-3);
            Var r = v[6];
            for (std::size_t i = 6; i-- > 0;) r = cumsum(r * v[i], 0) * 1e-3;
            return y * 0.5 + r;
          });
          return x * 0.9 + s * x;
        },
        with_journal(process, {}));
    const Var loss = sum(x * x);
    if (plans)
      CHECK_THROWS_AS(plan_backward(loss, {.memory_budget = 1000, .threads = 1}), BudgetError);
    return backward(loss, options)[u].clone();
  };
  const Tensor whole = run(program, {.budget = 1_MiB});
  run(program, {directory.path(), 16, 1_MiB});
  plans = false;
  CHECK(same_bits(run(program, {directory.path(), 0, 1_MiB}), whole));
}

}  // namespace
}  // namespace palimpsest::resume_derivatives_test
