#include <algorithm>
#include <cmath>
#include <stop_token>

#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/temporary_directory.h"

namespace reverse_progress_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

constexpr std::uint64_t steps = 200'000;  // so many that progress is shown several times

std::vector<ReverseProgress> progress_of(ReverseOptions options) {
  std::vector<ReverseProgress> seen;
  options.progress = [&](const ReverseProgress& now) { seen.push_back(now); };
  found_by_driver(steps, 1, options);
  return seen;
}

void check_rises(const std::vector<ReverseProgress>& seen) {
  for (std::size_t i = 1; i < seen.size(); ++i) {
    CHECK(seen[i].part >= seen[i - 1].part);
    CHECK(seen[i].steps_advanced >= seen[i - 1].steps_advanced);
    CHECK(seen[i].steps_reversed >= seen[i - 1].steps_reversed);
  }
}

/// Ends a run after so many calls of `reverse`. Returns what it showed.
std::vector<ReverseProgress> progress_until(std::uint64_t reversed, ReverseOptions options) {
  Row row{.steps = steps};
  ReverseFunctions<Numbers> functions = row.functions(options.steps.has_value());
  std::stop_source stop;
  options.stop = stop.get_token();
  functions.reverse = [&](Numbers& u, Numbers& a, std::uint64_t n) {
    row.reverse(u, a, n);
    if (--reversed == 0) stop.request_stop();
  };
  std::vector<ReverseProgress> seen;
  options.progress = [&](const ReverseProgress& now) { seen.push_back(now); };
  Numbers u = row.start(1);
  ReverseDriver(functions, options).run(u);
  return seen;
}

}  // namespace

TEST_CASE("reverse: progress goes from nothing to all") {
  enum class Keeps { slots, slots_on_disk, bytes };
  for (const bool knows_length : {true, false}) {
    for (const Keeps keeps : {Keeps::slots, Keeps::slots_on_disk, Keeps::bytes}) {
      CAPTURE(knows_length, static_cast<int>(keeps));
      const TemporaryDirectory directory(quick_folder());
      ReverseOptions options{.memory_budget = 16_KiB, .sizes_change = keeps == Keeps::bytes};
      if (knows_length) options.steps = steps;
      if (keeps == Keeps::slots_on_disk) {
        options.memory_budget = 16_MiB;
        options.spill = directory.path();
        options.disk_costs = DiskCosts{5e4, 5e4};
      }
      const std::vector<ReverseProgress> seen = progress_of(options);
      REQUIRE(!seen.empty());
      check_rises(seen);
      CHECK(seen.back().part == 1);
      CHECK(seen.back().steps_reversed == steps);
      const auto all = static_cast<double>(seen.back().steps_advanced + steps);
      for (const ReverseProgress& now : seen) {
        const bool has_begun = now.steps_advanced + now.steps_reversed > 0;
        CHECK((now.part > 0) == (now.steps > 0 && has_begun));
        if (keeps == Keeps::bytes || now.steps == 0) continue;
        const auto done = static_cast<double>(now.steps_advanced + now.steps_reversed);
        CHECK(std::abs(now.part - done / all) < 0.01);
      }
    }
  }
}

TEST_CASE("reverse: progress of a run that continues goes on, and a finished one shows all") {
  for (const bool knows_length : {true, false}) {
    for (const bool by_bytes : {false, true}) {
      CAPTURE(knows_length, by_bytes);
      const TemporaryDirectory directory(quick_folder());
      ReverseOptions options{.memory_budget = 128_KiB,
                             .sizes_change = by_bytes,
                             .resume = directory.path(),
                             .tag = "1",
                             .record_every = std::chrono::hours(1)};
      if (knows_length) options.steps = steps;
      std::vector<ReverseProgress> seen = progress_until(steps / 2, options);
      const double before = seen.empty() ? 0 : seen.back().part;
      seen = progress_of(options);
      REQUIRE(!seen.empty());
      CHECK(seen.front().part > 0.4);
      CHECK(seen.front().part >= before);
      check_rises(seen);
      seen = progress_of(options);
      REQUIRE(seen.size() == 1);
      CHECK(seen[0].part == 1);
      CHECK(seen[0].steps_reversed == steps);
    }
  }
}

TEST_CASE("reverse: a stop that is requested ends the run at once") {
  // The first calls are so many that looks at a clock would be rare.
  for (const bool resumes : {false, true}) {
    const TemporaryDirectory directory(quick_folder());
    Row row{.steps = steps};
    ReverseFunctions<Numbers> functions = row.functions();
    std::stop_source stop;
    functions.advance = [&](Numbers& u, std::uint64_t n) {
      row.advance(u, n);
      if (n == steps - 7) stop.request_stop();
    };
    ReverseOptions options{.steps = steps, .stop = stop.get_token()};
    if (resumes) {
      options.resume = directory.path();
      options.tag = "1";
    }
    Numbers u = row.start(1);
    ReverseDriver driver(functions, options);
    if (resumes) {
      CHECK(!driver.run(u));
    } else {
      CHECK_THROWS_AS(driver.run(u), StoppedError);
    }
    CHECK(row.advanced == steps - 6);
  }
}

TEST_CASE("reverse: a stop that is requested by the last call does not lose the result") {
  for (const bool by_bytes : {false, true}) {
    Row row{.steps = 20};
    ReverseFunctions<Numbers> functions = row.functions();
    std::stop_source stop;
    functions.reverse = [&](Numbers& u, Numbers& a, std::uint64_t n) {
      row.reverse(u, a, n);
      if (n == 0) stop.request_stop();
    };
    Numbers u = row.start(3);
    const auto adjoint =
        ReverseDriver(functions, {.steps = 20, .sizes_change = by_bytes, .stop = stop.get_token()})
            .run(u);
    CHECK(Found{adjoint, row.loss, row.gradient, {}} == plainly(20, 3));
  }
}

}  // namespace reverse_progress_test
