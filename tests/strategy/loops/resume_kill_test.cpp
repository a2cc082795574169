#include <chrono>
#include <filesystem>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>

#include "autodiff/files.h"
#include "strategy/training/training.h"
#include "tests/catch.h"
#include "tests/child_process.h"
#include "tests/strategy/loops/resumed_loop.h"
#include "tests/temporary_directory.h"

namespace palimpsest::loop_kill_test {

using namespace palimpsest::tests;

namespace {

/// A training run, by this number instead of that of a way.
constexpr int training = -1;

/// Trains through two loops in each step, saves each step, and continues from what was saved.
std::string train(const std::string& directory) {
  const std::string saved = directory + "/training.safetensors";
  NamedTensors parameters{{"force", Tensor::full({30}, 0.1, DType::f64)},
                          {"speed", Tensor::full({}, 0.2, DType::f64)}};
  const std::unique_ptr<Optimizer> optimizer = adam({.learning_rate = 0.02});
  const std::vector<TrainingPart> parts{{"parameters", parameters}, {"optimizer", *optimizer}};
  std::int64_t first = 0;
  if (std::filesystem::exists(saved)) {
    first = integer_at(load_training(saved, parts), "step");
  }
  const LoopOptions options{.memory_budget = 10'000,
                            .resume = directory + "/journals",
                            .tag = "training 1",
                            .record_every = std::chrono::seconds(0)};
  for (std::int64_t step = first; step < 3; ++step) {
    Tape tape;
    const Var force = tape.parameter(parameters.at("force"), "force");
    const Var speed = tape.parameter(parameters.at("speed"), "speed");
    const auto move = [&](const Var& u, const StepNumber&) { return ring_step(u, speed) + force; };
    Var u = tape.constant(wave(30));
    u = scan(u, 60, move, options);
    u = scan(tanh(u), 50, move, options);
    optimizer->step(backward(mean(u * u)));
    save_training(saved, parts, {{"step", step + 1}});
  }
  std::string bits;
  for (const auto& [name, tensor] : parameters) {
    const auto bytes = static_cast<std::size_t>(tensor.type().bytes());
    bits.append(reinterpret_cast<const char*>(tensor.raw()), bytes);
  }
  return bits;
}

std::string bits_of(int way, const std::string& directory) {
  if (way == training) return train(directory);
  ResumedLoop loop = resumed_way(way);
  loop.steps = loop.is_recorded_again ? 40 : 200;
  if (loop.run_budget != unlimited) loop.run_budget = 50'000;  // more inputs have more adjoints
  return found_by_loop(loop, directory + "/journals").bits;
}

/// Whether a loop in the directory has made a record.
bool has_record(const std::string& directory) {
  std::error_code error;
  using Entries = std::filesystem::recursive_directory_iterator;
  for (Entries entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().native().ends_with(".record")) return true;
  }
  return false;
}

struct Kills {
  int right = 0;       ///< runs that ended with the right bits
  int ended = 0;       ///< runs that ended
  int had_record = 0;  ///< kills that left something to continue
};

/// Kills runs at random moments until one ends, and starts afresh until `kills` were killed. Then
/// goes on until a kill came after a record.
Kills kill_at_random(int way, int kills, unsigned seed) {
  const TemporaryDirectory other(quick_folder());
  const std::string expected = bits_of(way, other.path());
  std::minstd_rand random(seed);
  Kills found;
  for (int killed = 0; killed < kills || found.had_record == 0;) {
    const bool awaits_record = killed >= kills;  // on a busy machine the others came too early
    const TemporaryDirectory directory(quick_folder());
    const std::string result = directory.path() + "/result";
    const std::string task = std::to_string(way) + " " + directory.path();
    const auto ends = [&] { return std::filesystem::exists(result); };
    do {
      ChildProcess child("child process: a loop with a journal", task);
      const auto is_awaited = [&] { return !has_record(directory.path()) && !ends(); };
      for (int waits = 0; awaits_record && waits < 100'000 && is_awaited(); ++waits) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      // Starting takes some milliseconds.
      for (auto left = awaits_record ? 0ul : 4'000 + random() % 40'000; left > 0 && !ends();
           left -= std::min(left, 500ul)) {
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
      child.kill();
      ++killed;
      found.had_record += !ends() && has_record(directory.path()) ? 1 : 0;
    } while (killed < kills && !ends());
    REQUIRE(killed < kills + 100);
    if (!ends()) {
      const int code = ChildProcess("child process: a loop with a journal", task).wait();
      REQUIRE(code == 0);
    }
    ++found.ended;
    found.right += read_file(result, "test") == expected;
  }
  return found;
}

}  // namespace

TEST_CASE("child process: a loop with a journal", "[.]") {
  std::istringstream task(ChildProcess::task());
  int way = 0;
  std::string directory;
  task >> way >> directory;
  // The parent takes a file of this name for whole.
  write_file(directory + "/unfinished", bits_of(way, directory), "test");
  std::filesystem::rename(directory + "/unfinished", directory + "/result");
}

TEST_CASE("loops, resume: killed at random moments, the same bits") {
  for (const int way : {0, 3}) {
    CAPTURE(way);
    const Kills kills = kill_at_random(way, 3, 7u + static_cast<unsigned>(way));
    CHECK(kills.right == kills.ended);
  }
}

TEST_CASE("loops, resume: a training run killed at random moments, the same parameters") {
  const Kills kills = kill_at_random(training, 5, 3);
  CHECK(kills.right == kills.ended);
}

TEST_CASE("loops, resume: killed at 200 random moments, the same bits", "[.long]") {
  for (int way = training; way < all_resumed_ways; ++way) {
    CAPTURE(way);
    const Kills kills = kill_at_random(way, 11, 100u + static_cast<unsigned>(way));
    CHECK(kills.right == kills.ended);
  }
}

}  // namespace palimpsest::loop_kill_test
