// The first runs of a process under a limit of the system. They succeed, perhaps on fewer threads,
// or throw an `EnvironmentError`.
#include <oneapi/tbb/global_control.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "autodiff/usable_threads.h"
#include "data/data.h"
#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/child_process.h"
#include "tests/environment_variable.h"
#include "tests/temporary_directory.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PALIMPSEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define PALIMPSEST_SANITIZED
#endif
#endif

namespace palimpsest::limits_test {
namespace {

/// Lowers a limit of this process.
void set_limit(__rlimit_resource which, rlim_t most) {
  rlimit limit;
  REQUIRE(::getrlimit(which, &limit) == 0);
  limit.rlim_cur = std::min(limit.rlim_max, most);
  REQUIRE(::setrlimit(which, &limit) == 0);
}

rlim_t address_space() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  REQUIRE(file >> pages);
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

/// A limit, named as the option of `ulimit`.
struct Limit {
  enum class Threads { all, some, none };

  std::function<void()> set;
  Threads threads = Threads::all;  ///< that the system starts
};

const std::map<std::string, Limit>& limits() {
  static const std::map<std::string, Limit> all{
      {"u",
       {[] {
          // The limit does not hold for root, whose processes may become nobody's.
          constexpr uid_t nobody = 65534;
          if (::geteuid() == 0) REQUIRE(::setresuid(nobody, nobody, nobody) == 0);
          set_limit(RLIMIT_NPROC, 1);
        },
        Limit::Threads::none}},
      // A thread's stack takes 4 MiB.
      {"v", {[] { set_limit(RLIMIT_AS, address_space() + (12 << 20)); }, Limit::Threads::some}},
      {"f", {[] { set_limit(RLIMIT_FSIZE, 1000); }}},
      {"n", {[] { set_limit(RLIMIT_NOFILE, 3); }}},
      {"s", {[] {}}},  // set before the process began
  };
  return all;
}

constexpr rlim_t small_stack = 256 << 10;

std::vector<Var> record(Tape& tape) {
  const Var x = tape.parameter(Tensor::uniform({200, 200}, 1, -1, 1));
  const Var y = tape.parameter(Tensor::uniform({200, 200}, 2, -1, 1));
  return {x, sum(tanh(matmul(x, y)) * x) + sum(exp(matmul(y, x)))};
}

Tensor gradient_of_run(const RunOptions& options, Report* report = nullptr) {
  Tape tape;
  const std::vector<Var> recorded = record(tape);
  const Gradients gradients = backward(recorded[1], options);
  if (report != nullptr) *report = gradients.report();
  return gradients[recorded[0]];
}

/// Whether the address space of this process is limited.
bool limited_memory = false;

/// Calls `f`, which may throw an `EnvironmentError` only, or `std::bad_alloc` where a few bytes for
/// a container are too many: threads that start meanwhile may take the whole address space.
void check_errors(const char* what, const std::function<void()>& f) {
  INFO(what);
  try {
    f();
  } catch (const EnvironmentError&) {
    // Nothing is printed, since output may go to a file, whose size may be limited.
  } catch (const std::bad_alloc&) {
    CHECK(limited_memory);
  } catch (const std::exception& error) {
    FAIL_CHECK(typeid(error).name() << " " << error.what());
  }
}

std::vector<Var> model(Tape&, std::span<const Var> parameters, std::span<const Var> batch) {
  return {mean(square(tanh(matmul(tanh(matmul(batch[0], parameters[0])), parameters[0]))))};
}

/// Returns why there were fewer threads than asked for.
std::string run_strategy(ParallelMode mode, ExecutionMode of_tapes = ExecutionMode::lazy) {
  ExecutionStrategy strategy{.mode = of_tapes, .parallelism = mode, .run = {.threads = 4}};
  if (mode == ParallelMode::pipeline) {
    strategy.stages = 2;
    strategy.accumulation = 2;
  }
  if (mode == ParallelMode::model_parallel) strategy.devices.resize(2);
  if (mode == ParallelMode::data_parallel) strategy.workers = 4;
  Execution execution(strategy);
  const Gradients gradients = execution.gradients(
      [](Tape& tape, std::span<const Var> parameters, std::span<const Var> batch) {
        return model(tape, parameters, batch)[0];
      },
      {{Tensor::uniform({48, 48}, 1)}}, {{Tensor::uniform({64, 48}, 2)}});
  CHECK(gradients.entries().size() == 1);
  return gradients.report().thread_problem;
}

void run_loader() {
  DataLoader loader(in_memory({{"x", Tensor::uniform({5, 2}, 1)}}), {.batch_size = 2});
  std::int64_t examples = 0;
  for (const Batch& batch : loader) examples += std::ssize(batch.examples);
  CHECK(examples == 5);
}

TEST_CASE("child process: first runs under a limit", "[.]") {
  std::istringstream task(ChildProcess::task());
  std::string name;
  std::string folder;
  REQUIRE(task >> name >> folder);
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const Limit& limit = limits().at(name);
  const auto cores =
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  rlimit of_files;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &of_files) == 0);
  limit.set();
  limited_memory = name == "v";
  Report report;
  Tensor first;
  check_errors("first run", [&] { first = gradient_of_run({.threads = 4}, &report); });
  check_errors("on one thread", [&] {
    const Tensor again = gradient_of_run({.threads = 1});
    CHECK((!first.defined() || same_bits(first, again)));
  });
  std::ostringstream text;
  text << report;
  if (limit.threads == Limit::Threads::none && cores > 1) {
    CHECK(report.threads == 1);
    CHECK_THAT(report.thread_problem, Catch::Matchers::Contains("the system starts 0 of "));
    CHECK_THAT(text.str(), Catch::Matchers::Contains("fewer threads     the system starts 0 of "));
    for (const ExecutionMode mode :
         {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
      CHECK_THAT(run_strategy(ParallelMode::automatic, mode),
                 Catch::Matchers::Contains("starts 0 of "));
    }
    gradient_of_run({.threads = 1}, &report);
    CHECK(report.thread_problem.empty());
  } else if (limit.threads == Limit::Threads::all) {
    CHECK(first.defined());
    CHECK(report.thread_problem.empty());
  }
  check_errors("eager", [] {
    Tape tape(eager());
    record(tape)[1].item();
  });
  check_errors("without a tape", [] {
    const Tensor x = Tensor::uniform({300, 300}, 1);
    matmul(x, tanh(x));
  });
  check_errors("program", [] {
    Runner runner(Program::values([](Tape& tape) { return record(tape); }, {.threads = 4}));
    runner.run();
  });
  check_errors("native", [&] {
    gradient_of_run({.threads = 4, .native = NativeCode::at_once}, &report);
    if (name == "u") CHECK_THAT(report.native.problem, Catch::Matchers::Contains(" failed: "));
    if (name == "f") CHECK_THAT(report.native.problem, Catch::Matchers::Contains("`ulimit -f`"));
  });
  check_errors("loader", run_loader);
  for (const ParallelMode mode : {ParallelMode::automatic, ParallelMode::data_parallel,
                                  ParallelMode::pipeline, ParallelMode::model_parallel}) {
    check_errors(name_of(mode).data(), [&] { (void)run_strategy(mode); });
  }
  check_errors("loop on disk", [&] {
    Tape tape;
    const Var u = tape.parameter(Tensor::uniform({1000}, 1, 0, 1, DType::f64));
    const auto body = [](const Var& x, const StepNumber&) { return sin(x) * 1.01; };
    const Var end = scan(u, 300, body, {.memory_budget = 100'000, .spill = folder});
    backward(sum(end), {.threads = 4});
    CHECK(name != "f");
  });
  check_errors("file", [&] {
    Report profiled;
    gradient_of_run({.threads = 1, .profile = true}, &profiled);
    profiled.write_chrome_trace(folder + "/trace.json");
    CHECK(name != "f");
  });
  ::setrlimit(RLIMIT_FSIZE, &of_files);  // output may go to a file
}

TEST_CASE("child process: a limit after threads were counted", "[.]") {
  const int threads = usable_threads();
  limits().at("u").set();
  if (threads > 1) {
    CHECK_THROWS_WITH(gradient_of_run({.threads = 4}),
                      Catch::Matchers::Contains("[threads] the system starts no more threads") &&
                          Catch::Matchers::Contains("set threads to 1"));
  }
  CHECK(gradient_of_run({.threads = 1}).defined());
}

/// Children do not look for leaks at their end, which takes a thread.
EnvironmentVariable without_leak_check() {
  constexpr const char* options = "ASAN_OPTIONS";
  return {options, EnvironmentVariable::value_of(options).value_or("") + ":detect_leaks=0"};
}

TEST_CASE("a thread that the system refuses later is a typed error, and one thread still runs") {
  const EnvironmentVariable options = without_leak_check();
  CHECK(ChildProcess("child process: a limit after threads were counted", "u").wait() == 0);
}

TEST_CASE("the first run under a limit of the system succeeds or throws a typed error") {
  const EnvironmentVariable options = without_leak_check();
  for (const auto& [name, limit] : limits()) {
#ifdef PALIMPSEST_SANITIZED
    // Sanitizers reserve terabytes, and look at objects through a pipe.
    if (name == "v" || name == "n") continue;
#endif
    INFO("ulimit -" << name);
    const TemporaryDirectory folder;
    REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
    const auto before = [] {
      rlimit stack;
      ::getrlimit(RLIMIT_STACK, &stack);
      stack.rlim_cur = small_stack;
      ::setrlimit(RLIMIT_STACK, &stack);
    };
    CHECK(ChildProcess("child process: first runs under a limit", name + " " + folder.path(),
                       name == "s" ? +before : nullptr)
              .wait() == 0);
  }
}

}  // namespace
}  // namespace palimpsest::limits_test
