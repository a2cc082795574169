#include <filesystem>
#include <fstream>

#include "checkpoint/stores/locked_file.h"
#include "tests/catch.h"
#include "tests/child_process.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/resumed_loop.h"
#include "tests/temporary_directory.h"

namespace palimpsest::loop_resume_errors_test {

using namespace palimpsest::tests;

namespace {

constexpr int in_forward = 20;
constexpr int in_backward = 90;

/// A directory with a journal of a loop that was stopped.
struct Stopped {
  explicit Stopped(const ResumedLoop& loop, int steps) {
    REQUIRE(stop_loop_after(steps, loop, directory.path()));
  }
  TemporaryDirectory directory{quick_folder()};
};

void check_rejected(const ResumedLoop& loop, int steps, void (*change)(ResumedLoop&),
                    const std::string& there, const std::string& here) {
  const Stopped stopped(loop, steps);
  ResumedLoop other = loop;
  change(other);
  check_error([&] { found_by_loop(other, stopped.directory.path()); },
              {"of another run: it has " + there, "this run has " + here,
               "; finish that run, or name another directory"});
  CHECK(found_by_loop(loop, stopped.directory.path()).bits == found_by_loop(loop, "").bits);
}

Var recorded(Tape& tape, const LoopOptions& options) {
  const Var u = tape.parameter(wave(10));
  return scan(u, 5, [&](const Var& x, const StepNumber&) { return sin(x); }, options);
}

}  // namespace

TEST_CASE("loops, resume: a journal of another run is rejected, and names what differs") {
  const ResumedLoop loop = resumed_way(0);
  ResumedLoop tagged = loop;
  tagged.tag = "ring 1";
  const auto check = [&](void (*change)(ResumedLoop&), const char* there, const char* here) {
    check_rejected(loop, in_forward, change, there, here);
    check_rejected(loop, in_backward, change, there, here);
  };
  check_rejected(
      tagged, in_backward, [](ResumedLoop& other) { other.tag = "ring 2"; }, "tag 'ring 1'",
      "tag 'ring 2'");
  check([](ResumedLoop& other) { other.steps = 61; }, "steps 60", "steps 61");
  check([](ResumedLoop& other) { other.loop_budget = 9'000; }, "a budget of the loop 7600",
        "a budget of the loop 9000");
  check([](ResumedLoop& other) { other.run_budget = 1'000'000; }, "a budget of the run unlimited",
        "a budget of the run 1000000");
  check([](ResumedLoop& other) { other.checks = false; }, "check 1", "check 0");
  check([](ResumedLoop& other) { other.start = 0.4; }, "a first state with the hash ",
        "a first state with the hash ");
  check([](ResumedLoop& other) { other.force = 0.02; }, "inputs with the hash ",
        "inputs with the hash ");
  check([](ResumedLoop& other) { other.speed = 0.3; }, "captured values with the hash ",
        "captured values with the hash ");
  check([](ResumedLoop& other) { other.slope = 0.2; }, "operation ", "operation ");
  check_rejected(
      loop, in_backward, [](ResumedLoop& other) { other.weight = 2; },
      "given adjoints with the hash ", "");
  const ResumedLoop again = resumed_way(8);
  check_rejected(
      again, 15, [](ResumedLoop& other) { other.slope = 0.2; }, "operation ", "operation ");
}

TEST_CASE("loops, resume: a finished journal gives way to another run") {
  const TemporaryDirectory directory(quick_folder());
  ResumedLoop loop = resumed_way(0);
  found_by_loop(loop, directory.path());
  for (const double weight : {2.0, 3.0}) {  // only the backward part differs
    loop.weight = weight;
    CHECK(found_by_loop(loop, directory.path()).bits == found_by_loop(loop, "").bits);
  }
  loop.start = 0.5;
  CHECK(found_by_loop(loop, directory.path()).bits == found_by_loop(loop, "").bits);
}

TEST_CASE("loops, resume: options and places that cannot have a journal are errors") {
  const TemporaryDirectory directory(quick_folder());
  const std::string& path = directory.path();
  Tape tape;
  check_error([&] { recorded(tape, {.resume = path, .record_every = std::chrono::seconds(-1)}); },
              {"[scan]", "record_every is negative; give a time"});
  check_error([&] { recorded(tape, {.tag = "1"}); }, {"a tag belongs to a journal"});
  check_error([&] { recorded(tape, {.record_every = std::chrono::seconds(1)}); },
              {"record_every belongs to a journal; set LoopOptions::resume, or leave it out"});
  check_error([&] { recorded(tape, {.spill = path + "/spill", .resume = path}); },
              {"name different directories; name the same one"});
  check_error(
      [&] { recorded(tape, {.spill = path, .spill_options = {.compress = true}, .resume = path}); },
      {"does not compress; leave out SpillOptions::compress or LoopOptions::resume"});
  const Var u = tape.parameter(wave(10));
  check_error(
      [&] {
        scan(u, 5, [&](const Var& x, const StepNumber& n) { return x * double(n); },
             {.resume = path});
      },
      {"recorded one by one", "name the program and its version in LoopOptions::tag"});
  check_error(
      [&] {
        scan(u, 5, [&](const Var& x, const StepNumber&) {
          return scan(x, 3, [&](const Var& y, const StepNumber&) { return sin(y); },
                      {.resume = path});
        });
      },
      {"a loop in a step of another loop", "set LoopOptions::resume of the outer loop instead"});
  check_error(
      [&] {
        checkpoint(
            [&](const Var& x) {
              return scan(x, 3, [&](const Var& y, const StepNumber&) { return sin(y); },
                          {.resume = path});
            },
            u);
      },
      {"a loop in a checkpoint", "leave out LoopOptions::resume"});
}

TEST_CASE("child process: another process with a loop", "[.]") {
  std::string message;
  try {
    found_by_loop(resumed_way(0), ChildProcess::task());
  } catch (const EnvironmentError& error) {
    message = error.what();
  }
  CHECK_THAT(message, Catch::Matchers::Contains("another process or driver uses the journal in"));
  CHECK_THAT(message, Catch::Matchers::Contains("wait for it, or name another directory"));
}

TEST_CASE("loops, resume: a second process is rejected") {
  const TemporaryDirectory directory(quick_folder());
  {
    Tape tape;
    recorded(tape, {.resume = directory.path()});
    recorded(tape, {.resume = directory.path() + "/./"});
    CHECK(ChildProcess("child process: another process with a loop", directory.path()).wait() == 0);
  }
  const ResumedLoop loop = resumed_way(0);
  CHECK(found_by_loop(loop, directory.path()).bits == found_by_loop(loop, "").bits);
}

TEST_CASE("loops, resume: the sweep of spill files leaves journals alone") {
  const ResumedLoop loop = resumed_way(2);
  const Stopped stopped(loop, in_backward);
  {
    const LockedFile swept(stopped.directory.path());
  }
  const FoundByLoop found = found_by_loop(loop, stopped.directory.path());
  CHECK(found.report.loops.at(0).resumed == 2);
  CHECK(found.bits == found_by_loop(loop, "").bits);
}

}  // namespace palimpsest::loop_resume_errors_test
