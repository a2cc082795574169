
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/checkpoint/reverse/random_chain.h"
#include "tests/checkpoint/reverse/resumed.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace reverse_resume_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

constexpr std::uint64_t steps = 60;
constexpr std::size_t size = 40;

ReverseOptions options_of(int way, const std::string& directory) {
  return resumed_options(way, steps, size, directory);
}

/// A run whose process ends at the call of a function with this number.
Found found_until(ReverseOptions options, std::int64_t calls) {
  Row row{.steps = steps};
  ReverseFunctions<Numbers> functions = row.functions(options.steps.has_value());
  struct Interrupted {};
  const auto count = [&] {
    if (calls-- == 0) throw Interrupted();
  };
  functions.advance = [&, advance = functions.advance](Numbers& u, std::uint64_t n) {
    count();
    advance(u, n);
  };
  functions.reverse = [&, reverse = functions.reverse](Numbers& u, Numbers& a, std::uint64_t n) {
    reverse(u, a, n);
    count();
  };
  ReverseDriver driver(functions, std::move(options));
  Numbers u = row.start(size);
  try {
    std::optional<Numbers> adjoint = driver.run(u);
    return {std::move(adjoint), row.loss, row.gradient, driver.report()};
  } catch (const Interrupted&) {
    return {};
  }
}

Found expected(int way) {
  const TemporaryDirectory directory(quick_folder());
  return found_by_driver(steps, size, options_of(way, directory.path()));
}

}  // namespace

TEST_CASE("reverse, resume: interrupted at any call, the same bits") {
  for (int way = 0; way < resumed_ways; ++way) {
    CAPTURE(way);
    const Found whole = expected(way);
    if (way / 2 < 4) CHECK(whole == plainly(steps, size));
    const TemporaryDirectory directory(quick_folder());
    std::minstd_rand random(static_cast<unsigned>(way));
    Found found;
    int runs = 0;
    while (!found.adjoint) {
      found = found_until(options_of(way, directory.path()),
                          // Windows of lossy runs are reversed twice at once.
                          static_cast<std::int64_t>(random() % (way / 2 == 4 ? 90 : 23)));
      REQUIRE(++runs < 500);
    }
    CHECK(runs > 3);
    CHECK(found == whole);
    CHECK(found.report.peak_bytes <= found.report.budget);
    // A finished journal gives the result again.
    CHECK(found_until(options_of(way, directory.path()), 0) == whole);
  }
}

TEST_CASE("reverse, resume: stop_after and stop end in good order") {
  const TemporaryDirectory directory(quick_folder());
  ReverseOptions options = options_of(0, directory.path());
  options.record_every = std::chrono::hours(1);
  options.stop_after = std::chrono::seconds(0);
  Found found;
  int runs = 0;
  for (; !found.adjoint && runs < 500; ++runs) {
    found = found_by_driver(steps, size, options);
    CHECK(found.report.records == (runs == 0 ? 2 : 1));  // the first run begins with one
    CHECK(found.report.finished == found.adjoint.has_value());
  }
  CHECK(runs > 10);
  CHECK(found == plainly(steps, size));

  std::stop_source source;
  source.request_stop();
  CHECK_THROWS_AS(found_by_driver(steps, size, {.steps = steps, .stop = source.get_token()}),
                  StoppedError);
}

TEST_CASE("reverse, resume: journals of other runs are rejected") {
  const TemporaryDirectory directory(quick_folder());
  const ReverseOptions options = options_of(0, directory.path());
  REQUIRE(!found_until(options, 30).adjoint);
  const auto rejects = [&](ReverseOptions other, const char* words) {
    check_error([&] { found_by_driver(steps, size, std::move(other)); },
                {"the journal in '" + directory.path() + "' is of another run", words,
                 "name another directory", "chains.h"});
  };
  ReverseOptions other = options;
  other.tag = "row 2";
  rejects(other, "it has tag 'row 1', and this run has tag 'row 2'");
  other = options;
  ++other.memory_budget;
  rejects(other, "memory budget");
  other = options;
  other.steps = steps + 1;
  rejects(other, "it has steps 60, and this run has steps 61");
  other = options;
  other.codec = ReverseCodec::zstd;
  rejects(other, "codec");

  Row row{.parameter = 0.8, .steps = steps};
  Numbers u = row.start(size);
  check_error([&] { ReverseDriver(row.functions(), options).run(u); },
              {"input parameter with the hash"});
  row.parameter = 0.7;
  u[0] += 1;
  check_error([&] { ReverseDriver(row.functions(), options).run(u); }, {"state 0 with the hash"});
  CHECK(found_by_driver(steps, size, options) == plainly(steps, size));
  // It is finished, so that another run may take its place.
  other = options;
  other.tag = "row 2";
  CHECK(found_by_driver(steps, size, other) == plainly(steps, size));
}

TEST_CASE("reverse, resume: a directory belongs to one run") {
  const TemporaryDirectory directory(quick_folder());
  Row row{.steps = steps};
  ReverseFunctions<Numbers> functions = row.functions();
  std::string message;
  functions.seed = [&](Numbers& u) {
    try {
      found_by_driver(steps, size, options_of(0, directory.path()));
    } catch (const EnvironmentError& error) {
      message = error.what();
    }
    return row.seed(u);
  };
  Numbers u = row.start(size);
  CHECK(ReverseDriver(functions, options_of(0, directory.path())).run(u));
  CHECK_THAT(message, Catch::Matchers::Contains("uses the journal in '" + directory.path()));
}

TEST_CASE("reverse, resume: spill files that are left behind do not take journals with them") {
  const TemporaryDirectory directory(quick_folder());
  REQUIRE(!found_until(options_of(2, directory.path()), 70).adjoint);
  const std::size_t files = directory.files().size();
  found_by_driver(40, size, {.steps = 40, .spill = directory.path(), .disk_costs = DiskCosts{}});
  CHECK(directory.files().size() == files);
  CHECK(found_by_driver(steps, size, options_of(2, directory.path())) == plainly(steps, size));
}

/// A run of a `RandomChain` whose process ends at the call of a function with this number.
Found found_by_chain(std::uint64_t length, std::size_t width, Sizes sizes, ReverseOptions options,
                     std::int64_t calls = -1) {
  RandomChain chain(length, width, sizes);
  options.steps = length;
  struct Interrupted {};
  const auto count = [&] {
    if (calls-- == 0) throw Interrupted();
  };
  ReverseDriver driver(chain.functions(true, false, count), std::move(options));
  Numbers u = chain.start();
  try {
    std::optional<Numbers> adjoint = driver.run(u);
    return {std::move(adjoint), chain.loss, chain.gradient, driver.report()};
  } catch (const Interrupted&) {
    return {};
  }
}

TEST_CASE("reverse, resume: states without bytes are kept and continue") {
  const Found whole = RandomChain(9, 2, Sizes::sometimes_none).plain();
  for (std::int64_t calls = 0; calls < 18; ++calls) {
    CAPTURE(calls);
    const TemporaryDirectory directory(quick_folder());
    const ReverseOptions options{.memory_budget = 256_KiB,
                                 .sizes_change = true,
                                 .resume = directory.path(),
                                 .tag = "1",
                                 .record_every = std::chrono::seconds(0)};
    found_by_chain(9, 2, Sizes::sometimes_none, options, calls);
    CHECK(found_by_chain(9, 2, Sizes::sometimes_none, options) == whole);
  }
}

TEST_CASE("reverse, resume: ended where a state is to be kept, the same states are kept") {
  const auto options_in = [](const std::string& directory) {
    return ReverseOptions{.memory_budget = 85'000,
                          .largest_state = 8,
                          .sizes_change = true,
                          .codec = ReverseCodec::half,
                          .sampled_segments = 0,
                          .resume = directory,
                          .tag = "1",
                          .record_every = std::chrono::seconds(0)};
  };
  const TemporaryDirectory other(quick_folder());
  const Found whole = found_by_chain(40, 1, Sizes::equal, options_in(other.path()));
  REQUIRE(whole.report.steps_advanced_again > 20);
  const auto calls = static_cast<std::int64_t>(whole.report.steps_advanced + 40);
  for (std::int64_t end = 0; end < calls; ++end) {
    const TemporaryDirectory directory(quick_folder());
    found_by_chain(40, 1, Sizes::equal, options_in(directory.path()), end);
    CAPTURE(end);
    CHECK(found_by_chain(40, 1, Sizes::equal, options_in(directory.path())) == whole);
  }
}

TEST_CASE("reverse: states that outgrow the memory for states, with a disk") {
  const TemporaryDirectory directory(quick_folder());
  constexpr std::uint64_t length = 3000;
  ReverseOptions options{.memory_budget = 1,
                         .sizes_change = true,
                         .spill = directory.path(),
                         .disk_costs = DiskCosts{2, 7}};
  try {
    found_by_chain(length, 2, Sizes::growing, options);
  } catch (const BudgetError& error) {
    options.memory_budget = error.smallest_feasible();
  }
  const Found found = found_by_chain(length, 2, Sizes::growing, options);
  CHECK(found == RandomChain(length, 2, Sizes::growing).plain());
  CHECK(found.report.peak_bytes <= options.memory_budget);
}

/// Changes bytes of the journal of an interrupted run, about `stride` bytes apart, and cuts files
/// off. The run must end with the right bits. Only where the end of the data is lost, it may report
/// so instead.
void check_damaged_journals(int way, unsigned stride) {
  const TemporaryDirectory made(quick_folder());
  const TemporaryDirectory damaged(quick_folder());
  REQUIRE(!found_until(options_of(way, made.path()), 90).adjoint);
  const ReverseOptions options = options_of(way, damaged.path());
  const Found whole = plainly(steps, size);
  std::minstd_rand random(5);
  std::size_t wrong = 0;
  std::size_t tried = 0;
  std::uint64_t repaired = 0;
  const auto try_it = [&](bool may_fail) {
    ++tried;
    try {
      const Found found = found_by_driver(steps, size, options);
      wrong += found != whole;
      repaired += found.report.states_repaired;
    } catch (const FileError& error) {
      const std::string message = error.what();
      wrong += !may_fail || message.find("to start the run afresh") == std::string::npos;
    }
    for (const std::string& file : damaged.files()) std::filesystem::remove(file);
  };
  for (const std::string& file : made.files()) {
    const std::string name = std::filesystem::path(file).filename().native();
    const std::string other = damaged.path() + "/" + name;
    const std::uintmax_t bytes = std::filesystem::file_size(file);
    for (std::uintmax_t at = 0; at < bytes; at += 1 + random() % stride) {
      const auto copy = std::filesystem::copy_options::recursive;
      std::filesystem::copy(made.path(), damaged.path(), copy);
      {
        std::fstream change(other, std::ios::in | std::ios::out | std::ios::binary);
        change.seekg(static_cast<std::streamoff>(at));
        const int byte = change.get();
        change.seekp(static_cast<std::streamoff>(at));
        change.put(static_cast<char>(byte ^ (1 << random() % 8)));
      }
      try_it(/*may_fail=*/false);
      if (random() % 8 > 0) continue;
      std::filesystem::copy(made.path(), damaged.path(), copy);
      std::filesystem::resize_file(other, at);
      try_it(/*may_fail=*/true);
    }
  }
  CAPTURE(way, tried, repaired);
  CHECK(wrong == 0);
  CHECK(repaired > 0);
  CHECK(tried > 30);
}

TEST_CASE("reverse, resume: bytes of the journal changed, or the end of a file lost") {
  for (const int way : {0, 2, 5}) check_damaged_journals(way, way == 2 ? 8000 : 3000);
}

TEST_CASE("reverse, resume: any byte of the journal changed", "[.long]") {
  for (const int way : {0, 2, 5, 7}) check_damaged_journals(way, way == 0 ? 1 : 40);
}

}  // namespace reverse_resume_test
