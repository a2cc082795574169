#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "autodiff/error.h"
#include "autodiff/files.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/checkpoint/reverse/resumed.h"
#include "tests/child_process.h"
#include "tests/temporary_directory.h"

namespace reverse_kill_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

constexpr std::uint64_t steps = 300;
constexpr std::size_t size = 200;
constexpr int not_possible_here = 77;

std::string bits_of(const Found& found) {
  std::string bits;
  const auto add = [&](double number) {
    bits.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (const double number : *found.adjoint) add(number);
  add(found.loss);
  add(found.gradient);
  return bits;
}

/// Kills runs at random moments until one ends, and starts afresh until `kills` were killed.
/// Returns the number of runs that ended with the right bits, and of those that ended.
std::pair<int, int> kill_at_random(int way, int kills, unsigned seed) {
  const TemporaryDirectory other(quick_folder());
  const std::string expected =
      bits_of(found_by_driver(steps, size, resumed_options(way, steps, size, other.path())));
  std::minstd_rand random(seed);
  int right = 0;
  int ended = 0;
  for (int killed = 0; killed < kills;) {
    const TemporaryDirectory directory(quick_folder());
    const std::string result = directory.path() + "/result";
    const auto ends = [&] { return std::filesystem::exists(result); };
    while (killed < kills && !ends()) {
      ChildProcess child("child process: a run with a journal",
                         std::to_string(way) + " " + directory.path());
      // Starting takes some milliseconds.
      for (auto left = 5000 + random() % 25'000; left > 0 && !ends();
           left -= std::min(left, 500ul)) {
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
      child.kill();
      ++killed;
    }
    if (!ends()) {
      const int code = ChildProcess("child process: a run with a journal",
                                    std::to_string(way) + " " + directory.path())
                           .wait();
      REQUIRE(code == 0);
    }
    ++ended;
    right += read_file(result, "test") == expected;
  }
  return {right, ended};
}

}  // namespace

TEST_CASE("child process: a run with a journal", "[.]") {
  std::istringstream task(ChildProcess::task());
  int way = 0;
  std::string directory;
  task >> way >> directory;
  const Found found =
      found_by_driver(steps, size, resumed_options(way, steps, size, directory + "/journal"));
  // The parent takes a file of this name for whole.
  write_file(directory + "/unfinished", bits_of(found), "test");
  std::filesystem::rename(directory + "/unfinished", directory + "/result");
}

TEST_CASE("reverse, resume: killed at random moments, the same bits") {
  for (const int way : {0, 1, 2, 4}) {
    CAPTURE(way);
    const auto [right, ended] = kill_at_random(way, 6, 7u + static_cast<unsigned>(way));
    CHECK(right == ended);
  }
}

TEST_CASE("reverse, resume: killed at 200 random moments, the same bits", "[.long]") {
  for (int way = 0; way < resumed_ways; ++way) {
    CAPTURE(way);
    const auto [right, ended] = kill_at_random(way, 20, 100u + static_cast<unsigned>(way));
    CHECK(right == ended);
  }
}

TEST_CASE("reverse, resume: a limit for files is an error, and a higher one continues") {
  const TemporaryDirectory directory(quick_folder());
  const ReverseOptions options = resumed_options(2, steps, size, directory.path());
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit low{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
  std::string message;
  try {
    found_by_driver(steps, size, options);
  } catch (const EnvironmentError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK_THAT(message, Catch::Matchers::Contains("cannot be written: File too large"));
  CHECK_THAT(message, Catch::Matchers::Contains("`ulimit -f`"));
  const Found found = found_by_driver(steps, size, options);
  CHECK(found == plainly(steps, size));
  CHECK(found.report.resumed_at > 0);
}

TEST_CASE("child process: a run on a small disk", "[.]") {
  const std::string directory = ChildProcess::task();
  // Mounts a file system that only this process sees. If that is not permitted, skips the test.
  const bool own = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  if (!own || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", directory.c_str(), "tmpfs", 0, "size=200k") != 0) {
    _exit(not_possible_here);
  }
  for (const bool resumes : {false, true}) {
    ReverseOptions options = resumed_options(2, steps, size, directory);
    if (!resumes) options.resume = options.tag = "";
    options.disk_costs = DiskCosts{0, 0};
    options.memory_budget += 200'000;
    options.spill = directory;
    std::string message;
    try {
      found_by_driver(steps, size, options);
    } catch (const EnvironmentError& error) {
      message = error.what();
    }
    CHECK_THAT(message, Catch::Matchers::Contains("No space left on device"));
    CHECK_THAT(message, Catch::Matchers::Contains("free disk space"));
    if (!resumes) continue;
    REQUIRE(mount("none", directory.c_str(), "tmpfs", MS_REMOUNT, "size=20m") == 0);
    const Found found = found_by_driver(steps, size, options);
    CHECK(found == plainly(steps, size));
    CHECK(found.report.resumed_at.has_value());
  }
}

TEST_CASE("reverse, resume: a full disk is an error, and room continues") {
  const TemporaryDirectory directory;
  const int code = ChildProcess("child process: a run on a small disk", directory.path()).wait();
  if (code == not_possible_here) WARN("no small disk can be made here");
  CHECK((code == 0 || code == not_possible_here));
}

}  // namespace reverse_kill_test
