// Native code that another thread makes while the interpreter serves.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <string>
#include <thread>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

using std::chrono::steady_clock;

/// Predicted times become so long that code pays after the first run.
RunOptions soon() {
  return {.threads = 1, .native = NativeCode::automatic, .machine = {.flops_per_second = 1e3}};
}

TEST_CASE("code is swapped in between runs", "[native]") {
  Tape tape;
  const Program program = Program::values(
      [](Tape& own) {
        const Var x = own.constant(numbers({777}, DType::f64, 1));
        return std::vector<Var>{x * 1.25 + x * x - exp(x)};
      },
      soon());
  Runner runner(program);
  runner.run();
  const Tensor expected = runner.value(program.outputs()[0]).clone();
  const auto end = steady_clock::now() + std::chrono::minutes(2);
  while (runner.report().native.groups == 0 && steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    runner.run();
    REQUIRE(same_bits(runner.value(program.outputs()[0]), expected));
  }
  CHECK(runner.report().native.groups == 1);
  const Report report = runner.report();
  CHECK(report.native.code > 0);
  CHECK(report.native.share > 0.9);
  std::ostringstream text;
  text << report;
  CHECK_THAT(text.str(), Catch::Matchers::Contains("native code       1 groups, 0 programs"));
  for (int run = 0; run < 20; ++run) {  // both kinds of run, which are compared
    runner.run();
    REQUIRE(same_bits(runner.value(program.outputs()[0]), expected));
  }
  CHECK(runner.report().native.seconds > 0);
  CHECK(runner.report().native.interpreted_seconds > 0);
}

TEST_CASE("code is swapped in while a loop runs", "[native]") {
  const auto make = [](NativeCode native) {
    return Program::values(
        [](Tape& own) {
          const Var start = own.constant(numbers({40}, DType::f64, 1));
          return std::vector<Var>{scan(start, 20'000, [](const Var& u, const StepNumber&) {
            return u - 0.3 * (u - roll(u, 1, 0));
          })};
        },
        {.threads = 1, .native = native});
  };
  const Program interpreted = make(NativeCode::off);
  Runner once(interpreted);
  once.run();
  const Tensor expected = once.value(interpreted.outputs()[0]);
  const Program program = make(NativeCode::automatic);
  Runner runner(program);
  const auto end = steady_clock::now() + std::chrono::minutes(2);
  do {
    runner.run();
    REQUIRE(same_bits(runner.value(program.outputs()[0]), expected));
    // Steps are compared as soon as there is code. A busy machine might find the code slower.
  } while (runner.report().native.code == 0 && steady_clock::now() < end);
  const Report report = runner.report();
  const bool is_slower = report.native.problem.find("slower") != std::string::npos;
  CHECK(report.native.steps == (is_slower ? 0 : 1));
}

#if defined(__SANITIZE_THREAD__)
#define PALIMPSEST_NO_THREADS_AFTER_FORK
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PALIMPSEST_NO_THREADS_AFTER_FORK
#endif
#endif
#ifndef PALIMPSEST_NO_THREADS_AFTER_FORK  // which TSan refuses
TEST_CASE("a forked child compiles its programs too", "[native]") {
  const auto becomes_native = [](std::int64_t size) {
    const Program program = Program::values(
        [&](Tape& own) {
          const Var x = own.constant(numbers({size}, DType::f64, 1));
          return std::vector<Var>{x * 1.75 + x * x - exp(x)};
        },
        soon());
    Runner runner(program);
    const auto end = steady_clock::now() + std::chrono::minutes(1);
    do {
      runner.run();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } while (runner.report().native.code == 0 && steady_clock::now() < end);
    return runner.report().native.code > 0;
  };
  REQUIRE(becomes_native(333));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      ::_exit(becomes_native(444) ? 0 : 1);
    } catch (...) {
      ::_exit(2);
    }
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif

TEST_CASE("a short program is not compiled", "[native]") {
  Tape tape;
  const Var x = tape.constant(numbers({50}, DType::f64, 1));
  Var y = x * 1.5 + x * x;
  const Report report = evaluate({&y, 1}, {.threads = 1});
  CHECK(report.native.groups == 0);
  CHECK(report.native.problem.empty());
}

}  // namespace
}  // namespace palimpsest
