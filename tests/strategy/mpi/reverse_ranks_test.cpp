#include "strategy/mpi/reverse_ranks.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "autodiff/error.h"
#include "checkpoint/plan.h"
#include "tests/error_of.h"
#include "tests/strategy/mpi/ranks.h"
#include "tests/strategy/mpi/ring.h"
#include "tests/temporary_directory.h"

namespace palimpsest::reverse_ranks_test {
namespace {

using Catch::Matchers::Contains;
using tests::Ring;

constexpr std::uint64_t steps = 40;
constexpr std::size_t size = 90;

/// A folder that all ranks use, and rank 0 makes and removes.
class SharedFolder {
 public:
  SharedFolder() {
    std::array<char, 200> name{};
    if (world().rank() == 0) own_.emplace(quick_folder()).path().copy(name.data(), name.size() - 1);
    MPI_Bcast(name.data(), name.size(), MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = name.data();
  }
  ~SharedFolder() { MPI_Barrier(MPI_COMM_WORLD); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::optional<TemporaryDirectory> own_;
  std::string path_;
};

/// The part of this rank in the result for the whole ring.
std::string expected() {
  Ring whole(size, 0, 1);
  const std::string bits = whole.plain(steps);
  const Ring own(size, world().rank(), world().size());
  return bits.substr(16 * own.first(), 16 * own.size());
}

struct Result {
  std::string bits;
  ReverseReport report;
};

/// The process seems to end at the call of `advance` with the number `calls`, on all ranks.
Result run(const ReverseOptions& options, int calls = -1) {
  Ring ring(size, world().rank(), world().size());
  ReverseFunctions<Ring::Numbers> functions = ring.functions();
  functions.advance = [&](Ring::Numbers& u, std::uint64_t n) {
    if (calls-- == 0) throw FileError("interrupted");
    ring.advance(u, n);
  };
  if (!options.steps) {
    functions.done = [](const Ring::Numbers&, std::uint64_t n) { return n == steps; };
  }
  ReverseDriver driver(functions, options);
  Ring::Numbers u = ring.start();
  const std::optional<Ring::Numbers> adjoint = driver.run(u);
  return {adjoint ? ring.bits_of(*adjoint) : "", driver.report()};
}

ReverseOptions options_without_budget(int way, const std::string& folder) {
  ReverseOptions options{.memory_budget = 1, .group = reverse_ranks(world())};
  if (way != 1) options.steps = steps;
  if (way == 2 || way == 5) options.spill = folder;
  if (way == 5) options.disk_costs = DiskCosts{1, 1};
  if (way == 3) options.sizes_change = true;
  if (way == 4) options.codec = ReverseCodec::zstd;
  if (way >= 3) {
    options.resume = folder;
    options.tag = "ring";
    options.record_every = std::chrono::seconds(0);
  }
  return options;
}

/// Runs with a disk, unknown length, a journal, or states that are kept by their bytes. `folder` is
/// for files. The budget is little more than the smallest one.
ReverseOptions options_of(int way, const std::string& folder) {
  static std::map<int, Bytes> budgets;
  if (!budgets.contains(way)) {
    const SharedFolder other;
    try {
      run(options_without_budget(way, other.path()));
    } catch (const BudgetError& error) {
      // With measured costs of the disk, the smallest budget differs from run to run.
      budgets[way] = error.smallest_feasible() + (way == 5 ? 0 : way == 2 ? 64_KiB : 3000);
    }
  }
  ReverseOptions options = options_without_budget(way, folder);
  options.memory_budget = budgets.at(way);
  return options;
}
constexpr int ways = 6;

}  // namespace

TEST_CASE("reverse, ranks: the bits of one process, and the same steps on all ranks") {
  for (int way = 0; way < ways; ++way) {
    CAPTURE(way);
    const SharedFolder folder;
    const Result result = run(options_of(way, folder.path()));
    CHECK(result.bits == expected());
    if (way != 2) CHECK(result.report.steps_advanced_again + result.report.disk_writes > 0);
    std::int64_t least[] = {static_cast<std::int64_t>(result.report.steps_advanced),
                            -static_cast<std::int64_t>(result.report.steps_advanced)};
    reverse_ranks(world())->least(least);
    CHECK(least[0] == -least[1]);
    CHECK(result.report.peak_bytes <= result.report.budget);
  }
}

TEST_CASE("reverse, ranks: a lossy codec, and the estimated error of each part") {
  ReverseOptions options = options_of(0, "");
  options.memory_budget += 300_KiB;
  options.codec = ReverseCodec::half;
  options.sampled_segments = 3;
  const Result result = run(options);
  const std::string exact = expected();
  REQUIRE(result.bits.size() == exact.size());
  double difference = 0;
  for (std::size_t at = 0; at < exact.size(); at += sizeof(double)) {
    double a = 0;
    double b = 0;
    std::memcpy(&a, result.bits.data() + at, sizeof a);
    std::memcpy(&b, exact.data() + at, sizeof b);
    difference = std::max(difference, std::abs(a - b));
  }
  CHECK(difference > 0);
  CHECK(difference < 1e-5);
  CHECK(result.report.errors.size() == 3);
}

TEST_CASE("reverse, ranks: the least budget counts, also one that is too small") {
  ReverseOptions options = options_of(0, "");
  const Bytes least = options.memory_budget;
  options.memory_budget += 1000 * (world().size() - 1 - world().rank());
  CHECK(run(options).report.budget == least);
  if (world().rank() == 0) options.memory_budget = 1;
  CHECK_THROWS_WITH(run(options), Contains("the budget of 1 B is too small"));
}

TEST_CASE("reverse, ranks: an error of one rank ends the run of all") {
  const int last = world().size() - 1;
  Ring::Numbers u(10);
  const auto run_alone = [&](std::uint64_t fails_at, bool forward) {
    const auto step = [&](std::uint64_t n, bool is_forward) {
      if (world().rank() == last && n == fails_at && is_forward == forward) {
        throw FileError("no luck");
      }
    };
    ReverseDriver<Ring::Numbers> driver(
        {.advance = [&](auto&, std::uint64_t n) { step(n, true); },
         .reverse = [&](auto&, auto&, std::uint64_t n) { step(n, false); },
         .seed = [](auto& state) { return state; }},
        {.steps = steps, .group = reverse_ranks(world())});
    driver.run(u);
  };
  for (const std::uint64_t fails_at : {std::uint64_t{0}, steps / 2, steps - 1}) {
    for (const bool forward : {true, false}) {
      const Failure failure = failure_of([&] { run_alone(fails_at, forward); });
      CHECK(world().first_failed() == last);
      CHECK_THAT(failure.own + failure.of_other, Contains("no luck"));
      CHECK(failure.rank == (world().rank() == last ? -1 : last));
    }
  }
  run_alone(steps, true);
}

TEST_CASE("reverse, ranks: other options on one rank are an error") {
  if (world().size() == 1) return;
  const SharedFolder folder;
  ReverseOptions options = options_of(3, folder.path());
  if (world().rank() == 1) options.tag = "circle";
  const Failure failure = failure_of([&] { run(options); });
  CHECK_THAT(failure.of_other, Contains("tag 'circle'") && Contains("tag 'ring'"));
  CHECK(failure.rank == 1);
}

TEST_CASE("reverse, ranks: continues from the last record that all ranks have") {
  for (int way = 3; way < ways; ++way) {
    CAPTURE(way);
    const SharedFolder folder;
    std::minstd_rand random(static_cast<unsigned>(way));
    Result result;
    int runs = 0;
    while (result.bits.empty() && ++runs < 200) {
      const auto calls = static_cast<int>(random() % 23);
      const auto behind = static_cast<int>(random() % static_cast<unsigned>(world().size() + 1));
      try {
        result = run(options_of(way, folder.path()), calls);
      } catch (const FileError& error) {
        CHECK(std::string(error.what()) == "interrupted");
      }
      if (!result.bits.empty() || world().rank() != behind) continue;
      // This rank was killed before it had written its last record.
      const std::string own = folder.path() + "/rank-" + std::to_string(behind);
      std::string last;
      std::uint64_t most = 0;
      for (const auto& file : std::filesystem::directory_iterator(own)) {
        const std::string name = file.path().stem().native();
        if (file.path().extension() != ".record") continue;
        const std::uint64_t number = std::stoull(name.substr(name.rfind('-') + 1));
        if (number > most) last = file.path().native();
        most = std::max(most, number);
      }
      if (!last.empty()) std::filesystem::remove(last);
    }
    CHECK(runs > 3);
    CHECK(result.bits == expected());
    CHECK(result.report.resumed_at.has_value());
  }
}

TEST_CASE("reverse, ranks: damaged states of one rank are made again by all") {
  const SharedFolder folder;
  // During the sweep, only states have bytes other than zero.
  CHECK_THROWS_WITH(run(options_of(5, folder.path()), 25), "interrupted");
  if (world().rank() == 0) {
    std::fstream data(folder.path() + "/rank-0/palimpsest-journal.data",
                      std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(data), {});
    for (char& byte : bytes) byte = byte == 0 ? '\0' : 1;
    data.seekp(0);
    data.write(bytes.data(), std::ssize(bytes));
  }
  const Result result = run(options_of(5, folder.path()));
  CHECK(result.bits == expected());
  CHECK(result.report.resumed_at > 0);
  CHECK((result.report.states_repaired > 0) == (world().rank() == 0));
}

TEST_CASE("reverse, ranks: a journal that is damaged on one rank ends the run of all") {
  const SharedFolder folder;
  try {
    run(options_of(5, folder.path()), 60);
  } catch (const FileError&) {
  }
  if (world().rank() == 0) {
    const std::string data = folder.path() + "/rank-0/palimpsest-journal.data";
    const auto bytes = std::filesystem::file_size(data);
    std::filesystem::resize_file(data, 0);
    std::filesystem::resize_file(data, bytes);
  }
  const Failure failure = failure_of([&] { run(options_of(5, folder.path())); });
  CHECK_THAT(failure.own + failure.of_other, Contains("to start the run afresh"));
}

namespace {

class OneMore final : public ReverseGroup {
 public:
  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size() + 1; }
  void least(std::span<std::int64_t> numbers) override { ranks_->least(numbers); }
  void least(std::span<double> numbers) override { ranks_->least(numbers); }
  void require_same(std::span<const std::string> lines) override { ranks_->require_same(lines); }
  void end(const std::exception_ptr& failure) override { ranks_->end(failure); }

 private:
  std::shared_ptr<ReverseGroup> ranks_ = reverse_ranks(world());
};

}  // namespace

TEST_CASE("reverse, ranks: a journal of another number of ranks is rejected") {
  const SharedFolder folder;
  CHECK_THROWS_WITH(run(options_of(3, folder.path()), 20), "interrupted");
  ReverseOptions options = options_of(3, folder.path());
  options.group = std::make_shared<OneMore>();
  const std::string size = std::to_string(world().size());
  const std::string more = std::to_string(world().size() + 1);
  CHECK_THROWS_WITH(run(options),
                    Contains("it has processes " + size + ", and this run has processes " + more));
  CHECK(run(options_of(3, folder.path())).bits == expected());
}

TEST_CASE("reverse, ranks: a forecast of all ranks, and a patience") {
  Ring ring(size, world().rank(), world().size());
  const ReverseDriver driver(ring.functions(), options_of(0, ""));
  Ring::Numbers u = ring.start();
  CHECK(driver.forecast(u).steps_advanced_again ==
        run(options_of(0, "")).report.steps_advanced_again);
  check_error([] { reverse_ranks(world(), std::chrono::seconds(0)); },
              {"[ranks]", "the patience is not positive", "reverse_ranks_test.cpp"});
}

}  // namespace palimpsest::reverse_ranks_test
