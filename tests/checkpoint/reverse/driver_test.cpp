#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

// Drivers that are moved, run again, and given objects that they cannot use.

namespace reverse_driver_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

constexpr std::uint64_t steps = 40;

ReverseOptions options_in(const std::string& directory) {
  return {.steps = steps, .resume = directory, .tag = "1", .record_every = std::chrono::seconds(0)};
}

/// A chain whose reversal appends to a list, until it requests a stop.
struct Listing {
  std::vector<double> list = {};
  std::uint64_t reversed = 0;
  std::uint64_t stops_after = 0;
  std::stop_source stop = {};

  ReverseFunctions<Numbers> functions() {
    return {.advance =
                [](Numbers& u, std::uint64_t n) {
                  for (double& x : u) x = std::sin(x) + 1e-3 * static_cast<double>(n);
                },
            .reverse =
                [this](Numbers& u, Numbers& adjoint, std::uint64_t) {
                  for (std::size_t i = 0; i < u.size(); ++i) adjoint[i] *= std::cos(u[i]);
                  list.push_back(u[0] * adjoint[0]);
                  if (++reversed == stops_after) stop.request_stop();
                },
            .seed = [](Numbers& u) { return u; },
            .accumulated = {named("list", list)}};
  }
  std::optional<Numbers> run(const ReverseOptions& options) {
    Numbers u = Row().start(20);
    return ReverseDriver(functions(), options).run(u);
  }
};

}  // namespace

TEST_CASE("reverse, driver: one that was moved from is refused, and the other one works") {
  Row row{.steps = steps};
  ReverseDriver first(row.functions(), {.steps = steps});
  ReverseDriver second = std::move(first);
  Numbers u = row.start(3);
  check_error([&] { first.run(u); }, {"[reverse] this driver was moved from"});
  check_error([&] { first.forecast(u); }, {"this driver was moved from"});
  check_error([&] { first.report(); }, {"this driver was moved from"});
  const auto adjoint = second.run(u);
  CHECK(Found{adjoint, row.loss, row.gradient, {}} == plainly(steps, 3));
}

TEST_CASE("reverse, driver: a step may move or replace its driver") {
  for (const bool replaces : {false, true}) {
    Row row{.steps = steps};
    Row other{.steps = steps};
    std::optional<ReverseDriver<Numbers>> driver, second;
    ReverseFunctions<Numbers> functions = row.functions();
    functions.advance = [&](Numbers& u, std::uint64_t n) {
      row.advance(u, n);
      if (n != 3 || row.advanced > 4) return;
      second.emplace(std::move(*driver));
      if (replaces) second.emplace(other.functions(), ReverseOptions{.steps = steps});
    };
    driver.emplace(functions, ReverseOptions{.steps = steps});
    Numbers u = row.start(3);
    const auto adjoint = driver->run(u);
    CHECK(Found{adjoint, row.loss, row.gradient, {}} == plainly(steps, 3));
  }
}

TEST_CASE("reverse, driver: objects that are null are refused") {
  Row row{.steps = steps};
  Numbers u = row.start(3);
  ReverseFunctions<Numbers> functions = row.functions();
  functions.accumulated[1].object = nullptr;
  check_error([&] { ReverseDriver(functions, {.steps = steps}).run(u); },
              {"[reverse] an accumulated object or an input is null"});
  functions = row.functions();
  functions.inputs[0].object = nullptr;
  check_error([&] { ReverseDriver(functions, {.steps = steps}).forecast(u); }, {"is null"});
}

TEST_CASE("reverse, driver: a run after one that failed begins with the same sums") {
  for (std::uint64_t calls = 0; calls < 2 * steps; ++calls) {
    const TemporaryDirectory directory(quick_folder());
    ReverseOptions options = options_in(directory.path());
    options.record_every = std::chrono::hours(1);  // no record is made before the failure
    Row row{.steps = steps};
    std::uint64_t done = 0;
    ReverseFunctions<Numbers> functions = row.functions();
    functions.advance = [&](Numbers& u, std::uint64_t n) {
      if (done++ == calls) throw std::runtime_error("advance");
      row.advance(u, n);
    };
    functions.reverse = [&](Numbers& u, Numbers& a, std::uint64_t n) {
      row.reverse(u, a, n);
      if (done++ == calls) throw std::runtime_error("reverse");
    };
    ReverseDriver driver(functions, options);
    Numbers u = row.start(3);
    CHECK_THROWS_AS(driver.run(u), std::runtime_error);
    u = row.start(3);
    const auto adjoint = driver.run(u);
    CHECK(Found{adjoint, row.loss, row.gradient, {}} == plainly(steps, 3));
  }
}

TEST_CASE("reverse, driver: accumulated objects that grow continue, in the same process too") {
  for (const ReverseCodec codec : {ReverseCodec::none, ReverseCodec::half}) {
    for (const bool spills : {false, true}) {
      for (Bytes more = 0; more < 40'000; more += 9000) {
        const auto options_of = [&](const std::string& directory) {
          ReverseOptions options = options_in(directory);
          options.codec = codec;
          options.sampled_segments = 1;
          if (spills) options.spill = directory;
          if (spills) options.disk_costs = DiskCosts{1, 1};
          options.memory_budget = 1;
          try {
            const TemporaryDirectory other(quick_folder());
            ReverseOptions least = options;
            least.resume = other.path();
            if (spills) least.spill = other.path();
            Listing().run(least);
          } catch (const BudgetError& error) {
            options.memory_budget = error.smallest_feasible() + more;
          }
          return options;
        };
        Listing whole;
        const TemporaryDirectory other(quick_folder());
        const std::optional<Numbers> expected = whole.run(options_of(other.path()));
        REQUIRE(whole.list.size() == steps);
        for (std::uint64_t end = 1; end < steps; end += 13) {
          for (const bool in_same_process : {true, false}) {
            CAPTURE(static_cast<int>(codec), spills, more, end, in_same_process);
            const TemporaryDirectory directory(quick_folder());
            ReverseOptions options = options_of(directory.path());
            Listing listing{.stops_after = end};
            options.stop = listing.stop.get_token();
            CHECK(!listing.run(options));
            options.stop = {};
            if (!in_same_process) listing.list.clear();  // as in another one
            CHECK(listing.run(options) == expected);
            CHECK(listing.list == whole.list);
            // A finished run gives the result again.
            const std::uint64_t reversed = listing.reversed;
            CHECK(listing.run(options) == expected);
            CHECK(listing.list == whole.list);
            CHECK(listing.reversed == reversed);
          }
        }
      }
    }
  }
}

TEST_CASE("reverse, driver: accumulated objects of other sizes are another run") {
  const TemporaryDirectory directory(quick_folder());
  Listing listing{.stops_after = 20};
  ReverseOptions options = options_in(directory.path());
  options.stop = listing.stop.get_token();
  CHECK(!listing.run(options));
  options.stop = {};
  Listing other{.list = {1, 2, 3}};
  check_error([&] { other.run(options); },
              {"the accumulated object 'list' has 24 bytes; in the journal in '",
               "it began with 0 bytes and has 160; give it the size that it begins with"});
  CHECK(other.list == std::vector<double>{1, 2, 3});
  CHECK(other.reversed == 0);
  CHECK(listing.run(options));
  // That run is finished.
  CHECK(other.run(options));
  CHECK(other.list.size() == 3 + steps);
}

TEST_CASE("reverse, driver: a finished journal gives the estimated errors again") {
  const TemporaryDirectory directory(quick_folder());
  ReverseOptions options = options_in(directory.path());
  options.codec = ReverseCodec::half;
  options.memory_budget = 40_KiB;
  options.memory_budget += smallest_budget(20, options);
  const Found first = found_by_driver(steps, 20, options);
  const Found again = found_by_driver(steps, 20, options);
  CHECK(again == first);
  CHECK(again.report.steps_advanced == 0);
  REQUIRE(first.report.errors.size() == 3);
  REQUIRE(again.report.errors.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(again.report.errors[i].name == first.report.errors[i].name);
    CHECK(again.report.errors[i].error == first.report.errors[i].error);
    CHECK(again.report.errors[i].norm == first.report.errors[i].norm);
  }
}

TEST_CASE("reverse, driver: half of the bits of a large number") {
  ReverseFunctions<Numbers> functions{.advance = [](Numbers& u, std::uint64_t) { u[0] *= 1e10; },
                                      .reverse = [](Numbers&, Numbers&, std::uint64_t) {},
                                      .seed = [](Numbers& u) { return u; }};
  Numbers u{1e30, 2};
  check_error([&] { ReverseDriver(functions, {.steps = 9, .codec = ReverseCodec::half}).run(u); },
              {"[reverse]", "too large", "use ReverseCodec::none or zstd", "driver_test.cpp"});
}

TEST_CASE("reverse, driver: paths that begin in a directory that is removed") {
  const std::filesystem::path before = std::filesystem::current_path();
  {
    const TemporaryDirectory directory;
    std::filesystem::current_path(directory.path());
  }
  std::string message;
  try {
    found_by_driver(steps, 3, options_in("journal"));
  } catch (const FileError& error) {
    message = error.what();
  }
  std::filesystem::current_path(before);
  CHECK_THAT(message, Catch::Matchers::Contains("'journal' cannot be found from the current"));
  CHECK_THAT(message, Catch::Matchers::Contains("give an absolute path"));
}

}  // namespace reverse_driver_test
