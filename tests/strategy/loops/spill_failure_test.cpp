#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>

#include "tests/catch.h"
#include "tests/child_process.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/spilling_ring.h"
#include "tests/temporary_directory.h"

namespace palimpsest::spill_failure_test {
namespace {

TEST_CASE("a run with a disk that fails leaves no file") {
  const TemporaryDirectory directory;
  const auto gradients = [&](std::function<void(std::uint64_t, std::int64_t)> harm) {
    Ring ring(60, {.memory_budget = 31'000, .spill = directory.path(), .disk_costs = nearly_free},
              true);
    ring.calls = 0;
    ring.before_step = [&](std::int64_t n) { harm(ring.calls, n); };
    backward(ring.loss);
  };
  SECTION("by the body, on the way forward and back") {
    for (const std::uint64_t call : {30, 60, 62, 80}) {
      bool had_file = false;
      const auto harm = [&](std::uint64_t calls, std::int64_t) {
        if (calls != call) return;
        had_file = !directory.files().empty();
        throw std::runtime_error("enough");
      };
      CHECK_THROWS_WITH(gradients(harm), "enough");
      CHECK(had_file);
      CHECK(directory.files().empty());
    }
  }
  SECTION("by a file that is cut short, changed or gone") {
    for (const int kind : {0, 1, 2}) {
      CAPTURE(kind);
      const auto harm = [&](std::uint64_t calls, std::int64_t) {
        if (calls != 62) return;
        const std::string path = directory.files().at(0);
        if (kind == 0) std::filesystem::resize_file(path, 100);
        if (kind == 2) std::filesystem::remove(path);
        if (kind != 1) return;
        std::FILE* const file = std::fopen(path.c_str(), "r+b");
        for (long at = 0; std::fseek(file, at, SEEK_SET) == 0 && at < 20'000; at += 64) {
          std::fputc(0x55, file);
        }
        std::fclose(file);
      };
      CHECK_THROWS_AS(gradients(harm), FileError);
      CHECK(directory.files().empty());
    }
  }
}

TEST_CASE("a file that is cut short fails every derivative that reads it") {
  const TemporaryDirectory directory;
  for (int k = 0; k < 10; ++k) {
    Tape tape;
    const Var u = tape.parameter(wave(100));
    const Var c = tape.parameter(number(0.2));
    std::atomic<int> calls = 0;
    const Var end =
        scan(u, 60,
             [&](const Var& x, const StepNumber& n) {
               if (++calls == 62) std::filesystem::resize_file(directory.files().at(0), 100);
               return ring_step(n % 3 == 0 ? x * 0.99 : x, c);
             },
             {.memory_budget = 31'000, .spill = directory.path(), .disk_costs = nearly_free});
    const Var both[] = {gradient(sum(end * end), u), gradient(sum(sin(end)), c)};
    CHECK_THROWS_AS(evaluate(both, {.threads = 2}), FileError);
    CHECK(directory.files().empty());
  }
}

TEST_CASE("a directory that is none is an error before any work") {
  Tape tape;
  const Var u = tape.parameter(wave(100));
  const auto body = [](const Var& x, const StepNumber&) { return sin(x); };
  try {
    scan(u, 10, body, {.spill = "/nowhere/at/all"});
    FAIL("no error");
  } catch (const FileError& error) {
    CHECK_THAT(error.what(), Catch::Matchers::Contains("/nowhere/at/all") &&
                                 Catch::Matchers::Contains("spill_failure_test.cpp"));
  }
}

TEST_CASE("a disk that is full is an error of the run, which can be made again") {
  const TemporaryDirectory directory;
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const LoopOptions options{
      .memory_budget = 31'000, .spill = directory.path(), .disk_costs = nearly_free};
  Ring all(300, {});
  const Gradients expected = backward(all.loss);
  Ring ring(300, options);
  const rlimit low{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
  std::string message;
  try {
    backward(ring.loss);
  } catch (const EnvironmentError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK_THAT(message, Catch::Matchers::Contains(directory.path()));
  CHECK(directory.files().empty());
  CHECK(same_bits(backward(ring.loss)[ring.u], expected[all.u]));
}

std::optional<Gradients> gradients_on_disk(Ring& ring, std::uint64_t killed_at) {
  ring.calls = 0;
  ring.before_step = [&ring, killed_at](std::int64_t) {
    if (ring.calls == killed_at) std::raise(SIGKILL);
  };
  return backward(ring.loss);
}

LoopOptions on_disk(const std::string& directory) {
  return {.memory_budget = 31'000, .spill = directory, .disk_costs = nearly_free};
}

TEST_CASE("child process: a loop that is killed", "[.]") {
  Ring ring(60, on_disk(ChildProcess::task()), true);
  gradients_on_disk(ring, 70);
}

TEST_CASE("what a killed run leaves is removed by the next, which is right") {
  const TemporaryDirectory directory;
  CHECK(ChildProcess("child process: a loop that is killed", directory.path()).wait() == -1);
  CHECK(directory.files().size() == 1);
  Ring all(60, {}, true);
  const Gradients expected = backward(all.loss);
  Ring ring(60, on_disk(directory.path()), true);
  CHECK(same_bits((*gradients_on_disk(ring, 0))[ring.u], expected[all.u]));
  CHECK(directory.files().empty());
}

}  // namespace
}  // namespace palimpsest::spill_failure_test
