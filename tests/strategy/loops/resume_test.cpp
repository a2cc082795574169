#include <filesystem>
#include <fstream>
#include <random>

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/resumed_loop.h"
#include "tests/temporary_directory.h"

namespace palimpsest::loop_resume_test {

using namespace palimpsest::tests;

namespace {

std::uint64_t resumed_in(const FoundByLoop& found) { return found.report.loops.at(0).resumed; }

/// Files of a directory and its journals.
std::vector<std::filesystem::path> files_of(const std::string& directory, const std::string& end) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().native().ends_with(end)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

void flip(const std::filesystem::path& path, std::uintmax_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 0x10));
}

/// Runs copies of a journal, each of which `harm` damages. Returns the bits that they found.
template <class Harm>
FoundByLoop found_after(const ResumedLoop& loop, const std::string& journal, Harm harm) {
  const TemporaryDirectory copy(quick_folder());
  std::filesystem::copy(
      journal, copy.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  harm(copy.path());
  return found_by_loop(loop, copy.path());
}

}  // namespace

TEST_CASE("loops, resume: a journal changes no bits, and a finished one gives the results") {
  for (int way = 0; way < resumed_ways; ++way) {
    CAPTURE(way);
    const TemporaryDirectory directory(quick_folder());
    const ResumedLoop loop = resumed_way(way);
    const FoundByLoop found = found_by_loop(loop, directory.path());
    if (!loop.is_half) CHECK(found.bits == found_by_loop(loop, "").bits);
    CHECK(found_by_loop(loop, directory.path()).bits == found.bits);
  }
}

/// Stops loops after about so many steps, and continues them until they end.
void stop_and_continue(int way, int steps) {
  CAPTURE(way, steps);
  ResumedLoop loop = resumed_way(way);
  const TemporaryDirectory other(quick_folder());
  const std::string expected = found_by_loop(loop, other.path()).bits;
  const TemporaryDirectory directory(quick_folder());
  int stops = 0;
  while (stop_loop_after(steps + stops % 7, loop, directory.path())) {
    REQUIRE(++stops < 400);
    // Then only the stop makes a record.
    loop.record_every = std::chrono::hours(stops % 2);
  }
  CHECK(stops > 0);
  CHECK(found_by_loop(loop, directory.path()).bits == expected);
}

TEST_CASE("loops, resume: stopped anywhere, it continues with the same bits") {
  for (int way = 0; way < resumed_ways; ++way) stop_and_continue(way, 33);
}

TEST_CASE("loops, resume: stopped everywhere, it continues with the same bits", "[.long]") {
  for (int way = 0; way < resumed_ways; ++way) {
    for (int steps = 4; steps < 50; steps += 3) stop_and_continue(way, steps);
  }
}

TEST_CASE("loops, resume: steps that an earlier process has run are not run again") {
  ResumedLoop loop = resumed_way(8);
  const TemporaryDirectory directory(quick_folder());
  std::vector<std::int64_t> steps;
  REQUIRE(stop_loop_after(15, loop, directory.path()));
  loop.before_step = [&](std::int64_t step) { steps.push_back(step); };
  const FoundByLoop found = found_by_loop(loop, directory.path());
  CHECK(resumed_in(found) == 1);
  CHECK(found.report.loops.at(0).records > 10);
  REQUIRE(steps.size() > 5);
  // The first step is recorded with the loop, and run for the identity of the journal.
  CHECK(std::vector(steps.begin(), steps.begin() + 4) == std::vector<std::int64_t>{0, 0, 14, 15});
  std::ostringstream text;
  text << found.report;
  CHECK_THAT(text.str(), Catch::Matchers::Contains("continued from a journal"));
  CHECK_THAT(text.str(), Catch::Matchers::Contains("records in the journal"));
}

TEST_CASE("loops, resume: a finished loop runs no step, and a short one writes no record") {
  ResumedLoop loop = resumed_way(8);
  const TemporaryDirectory directory(quick_folder());
  const std::string expected = found_by_loop(loop, directory.path()).bits;
  // The values that are asked for after the gradients come from a run without held states.
  CHECK(files_of(directory.path(), ".record").size() == 2);
  int steps = 0;
  loop.before_step = [&](std::int64_t) { ++steps; };
  CHECK(found_by_loop(loop, directory.path()).bits == expected);
  CHECK(steps == 3);  // recorded with the loop, and run for the identity of each journal
  loop.record_every = std::chrono::hours(1);
  const TemporaryDirectory other(quick_folder());
  CHECK(found_by_loop(loop, other.path()).bits == expected);
  CHECK(files_of(other.path(), ".record").empty());
  for (const auto& file : files_of(other.path(), ".data")) {
    CHECK(std::filesystem::file_size(file) == 0);
  }
}

TEST_CASE("loops, resume: a stop before any record was due, forward and backward") {
  for (int way = 0; way < resumed_ways; ++way) {
    ResumedLoop loop = resumed_way(way);
    loop.record_every = std::chrono::hours(1);
    const TemporaryDirectory other(quick_folder());
    const std::string expected = found_by_loop(loop, other.path()).bits;
    // Later stops need more steps than the forward part, which may run again.
    for (const int first : {10, 80}) {
      CAPTURE(way, first);
      const TemporaryDirectory directory(quick_folder());
      int stops = 0;
      while (stop_loop_after(stops == 0 ? first : 75, loop, directory.path())) {
        REQUIRE(++stops < 20);
      }
      CHECK(found_by_loop(loop, directory.path()).bits == expected);
      CHECK(found_by_loop(loop, directory.path()).bits == expected);
    }
  }
}

TEST_CASE("loops, resume: continues with another number of threads") {
  for (const int way : {0, 12}) {
    ResumedLoop loop = resumed_way(way);
    const TemporaryDirectory directory(quick_folder());
    const std::string expected = found_by_loop(loop, "").bits;
    for (const int threads : {1, 2, 3}) {
      loop.threads = threads;
      REQUIRE(stop_loop_after(30, loop, directory.path()));
    }
    CHECK(found_by_loop(loop, directory.path()).bits == expected);
  }
}

TEST_CASE("loops, resume: a damaged byte anywhere is found and computed again") {
  for (const int way : {0, 3, 6}) {
    for (const int steps : {25, 90}) {
      CAPTURE(way, steps);
      const ResumedLoop loop = resumed_way(way);
      const TemporaryDirectory directory(quick_folder());
      REQUIRE(stop_loop_after(steps, loop, directory.path()));
      std::string expected = found_by_loop(loop, "").bits;
      if (loop.is_half) {
        expected = found_after(loop, directory.path(), [](const std::string&) {}).bits;
      }
      std::uint64_t repaired = 0;
      constexpr std::uintmax_t distance = 3 * 4096;  // extents begin at multiples of 4096
      std::uintmax_t last = 0;
      for (const auto& file : files_of(directory.path(), ".data")) {
        last = std::max(last, std::filesystem::file_size(file));
      }
      for (std::uintmax_t at = 100; at < last; at += distance) {
        const FoundByLoop found = found_after(loop, directory.path(), [&](const std::string& copy) {
          for (const auto& file : files_of(copy, ".data")) {
            if (at < std::filesystem::file_size(file)) flip(file, at);
          }
        });
        CHECK(found.bits == expected);
        repaired += found.report.loops.at(0).states_repaired;
      }
      CHECK((repaired > 0) == !loop.is_half);
    }
  }
}

TEST_CASE("loops, resume: a torn or flipped record gives way to the one before") {
  const ResumedLoop loop = resumed_way(0);
  for (const int steps : {25, 90}) {
    const TemporaryDirectory directory(quick_folder());
    REQUIRE(stop_loop_after(steps, loop, directory.path()));
    const std::string expected = found_by_loop(loop, "").bits;
    const auto last_record = [](const std::string& copy) {
      return files_of(copy + "/palimpsest-loop-3-states", ".record").back();
    };
    for (const bool torn : {false, true}) {
      const FoundByLoop found = found_after(loop, directory.path(), [&](const std::string& copy) {
        const auto record = last_record(copy);
        const auto size = std::filesystem::file_size(record);
        torn ? std::filesystem::resize_file(record, size / 2) : flip(record, size / 2);
      });
      CHECK(found.bits == expected);
      CHECK(resumed_in(found) > 0);
    }
    CHECK_THROWS_AS(found_after(loop, directory.path(),
                                [&](const std::string& copy) {
                                  for (const auto& record : files_of(copy, ".record")) {
                                    flip(record, 50);
                                  }
                                }),
                    FileError);
  }
}

TEST_CASE("loops, resume: a loop with two backward parts gives way to another run") {
  const TemporaryDirectory directory(quick_folder());
  const auto found = [&](double start, const std::string& path) {
    Tape tape;
    const Var u = tape.parameter(Tensor::full({20}, start, DType::f64));
    const Var x = scan(
        u, 12, [](const Var& x, const StepNumber&) { return ring_step(x, mean(x)); },
        recorded_often({.memory_budget = 12'000, .resume = path}));
    const Var first = gradient(sum(x * x), {u})[0];
    const Var second = gradient(sum(x), {u})[0];
    return (first * second).value().clone();
  };
  for (const double start : {0.1, 0.2}) {
    CHECK(same_bits(found(start, directory.path()), found(start, "")));
  }
}

TEST_CASE("loops, resume: several loops, derivatives of higher order and Programs continue") {
  const auto found = [](int which, const std::string& directory, std::stop_token stop,
                        std::shared_ptr<const ProgressFunction> progress) {
    const LoopOptions options = recorded_often({.memory_budget = 12'000, .resume = directory});
    const RunOptions run{.threads = 2, .stop = std::move(stop), .progress = std::move(progress)};
    const auto step = [](const Var& x, const StepNumber&) { return ring_step(x, mean(x)); };
    Tape tape;
    const Var u = tape.parameter(wave(20));
    if (which == 0) {  // one after the other, and two side by side
      const Var x = scan(u, 12, step, options);
      const Var y = scan(x, 10, step, options) * scan(tanh(x), 11, step, options);
      return backward(sum(y), run)[u];
    }
    if (which == 1) {  // two backward parts
      const Var x = scan(u, 12, step, options);
      const Var first = gradient(sum(x * x), {u})[0];
      const Var second = gradient(sum(x), {u})[0];
      return backward(sum(first * second), run)[u];
    }
    std::vector<Var> parameters;
    const Program program = Program::gradients(
        [&](Tape& recorded) {
          parameters = {recorded.parameter(wave(20))};
          return sum(scan(parameters[0], 12, step, options));
        },
        run);
    Runner runner(program);
    runner.run();
    return runner.gradients()[parameters[0]];
  };
  for (const int which : {0, 1, 2}) {
    CAPTURE(which);
    const Tensor expected = found(which, "", {}, {});
    const TemporaryDirectory directory(quick_folder());
    int stops = 0;
    while (is_stopped_after(9 + stops % 5, [&](std::stop_token stop, auto progress) {
      found(which, directory.path(), std::move(stop), std::move(progress));
    })) {
      REQUIRE(++stops < 200);
    }
    CHECK(stops > 1);
    CHECK(same_bits(found(which, directory.path(), {}, {}), expected));
  }
}

TEST_CASE("loops, resume: an Execution that runs loops again continues") {
  Tensor parameters[] = {Tensor::full({10}, 0.2, DType::f64)};
  const Tensor batch[] = {Tensor::uniform({8, 10}, 3, -1, 1, DType::f64)};
  const auto found = [&](ExecutionStrategy strategy, const std::string& directory,
                         std::stop_token stop, std::shared_ptr<const ProgressFunction> progress) {
    const LoopOptions options = recorded_often({.memory_budget = 60'000, .resume = directory});
    strategy.run.threads = 2;
    strategy.run.stop = std::move(stop);
    strategy.run.progress = std::move(progress);
    Execution execution(strategy);
    const Gradients gradients = execution.gradients(
        [&](Tape&, std::span<const Var> p, std::span<const Var> x) -> LossAndOutputs {
          const auto step = [&](const Var& u, const StepNumber&) {
            return sin(u * p[0]) + u * 0.3;
          };
          const Var u = scan(tanh(scan(x[0], 12, step, options)), 9, step, options);
          return mean(u * u);
        },
        parameters, batch);
    return gradients.begin()->gradient.clone();
  };
  std::vector<ExecutionStrategy> strategies(9);
  strategies[0].gradient = GradientMode::checkpointed;
  strategies[0].checkpoint_interval = 2;
  strategies[1].gradient = GradientMode::checkpointed;
  strategies[1].checkpoint_fraction = 0.5;
  strategies[2].mode = ExecutionMode::hybrid;
  strategies[3].parallelism = ParallelMode::model_parallel;
  strategies[3].devices.resize(2);
  strategies[4].precision = Precision{};
  // Each part of the batch has journals of its own.
  strategies[5].accumulation = 4;
  strategies[6].parallelism = ParallelMode::data_parallel;
  strategies[6].workers = 2;
  strategies[6].accumulation = 2;
  strategies[7].parallelism = ParallelMode::pipeline;
  strategies[7].stages = 2;
  strategies[7].accumulation = 4;
  strategies[8].parallelism = ParallelMode::model_parallel;
  strategies[8].devices.resize(2);
  strategies[8].accumulation = 2;
  for (const ExecutionStrategy& strategy : strategies) {
    CAPTURE(strategy);
    const Tensor expected = found(strategy, "", {}, {});
    const TemporaryDirectory directory(quick_folder());
    int stops = 0;
    // More than the first steps of all parts, which run again for the identities of journals.
    const int steps = 14 + 6 * strategy.accumulation;
    while (is_stopped_after(steps + stops % 5, [&](std::stop_token stop, auto progress) {
      found(strategy, directory.path(), std::move(stop), std::move(progress));
    })) {
      REQUIRE(++stops < 60);
    }
    CHECK(stops > 1);
    CHECK(same_bits(found(strategy, directory.path(), {}, {}), expected));
    // All journals are finished, so that another run takes their place.
    const Tensor before = std::exchange(parameters[0], Tensor::full({10}, 0.3, DType::f64));
    CHECK(same_bits(found(strategy, directory.path(), {}, {}), found(strategy, "", {}, {})));
    parameters[0] = before;
  }
}

}  // namespace palimpsest::loop_resume_test
