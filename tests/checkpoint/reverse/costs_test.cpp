#include <sys/resource.h>

#include <algorithm>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

// Costs of the disk: given or measured, they decide which states are written. Which budgets are
// feasible does not depend on them.

namespace reverse_costs_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

constexpr std::size_t size = 800;

}  // namespace

TEST_CASE("reverse, costs: the smallest budget is that of any costs, and measures none") {
  const TemporaryDirectory directory(quick_folder());
  constexpr std::uint64_t steps = 200;
  ReverseOptions options{.steps = steps, .memory_budget = 1, .spill = directory.path()};
  const auto smallest_of = [&](std::optional<DiskCosts> costs) {
    options.disk_costs = costs;
    Row row{.steps = steps};
    Numbers u = row.start(size);
    Bytes smallest = 0;
    try {
      ReverseDriver(row.functions(), options).run(u);
    } catch (const BudgetError& error) {
      smallest = error.smallest_feasible();
    }
    CHECK(row.advanced == 0);
    return smallest;
  };
  const Bytes smallest = smallest_of({});
  for (const DiskCosts costs : {DiskCosts{0, 0}, {0, 9}, {3, 3}, {1e6, 1}}) {
    CHECK(smallest_of(costs) == smallest);
  }
  options.disk_costs = {};
  options.memory_budget = smallest;
  CHECK(found_by_driver(steps, size, options) == plainly(steps, size));
}

TEST_CASE("reverse, costs: every budget from the smallest on, with as many states on disk as fit") {
  const TemporaryDirectory directory(quick_folder());
  for (const std::uint64_t steps : {2, 25, 90}) {
    for (const DiskCosts costs : {DiskCosts{0, 0}, {0.5, 40}, {3, 3}, {1000, 1}}) {
      ReverseOptions options{.steps = steps, .spill = directory.path(), .disk_costs = costs};
      const Bytes smallest = smallest_budget(size, options);
      const Found expected = plainly(steps, size);
      const Bytes most = table_bytes(steps) + static_cast<Bytes>(steps * size * sizeof(double)) / 2;
      std::size_t wrong = 0;
      std::uint64_t writes = 0;
      for (Bytes more = 0; more < most; more += most / 40 + 1) {
        options.memory_budget = smallest + more;
        Row row{.steps = steps};
        Numbers u = row.start(size);
        const ReverseForecast forecast = ReverseDriver(row.functions(), options).forecast(u);
        const Found found = found_by_driver(steps, size, options);
        wrong += found != expected;
        wrong += found.report.peak_bytes > options.memory_budget;
        wrong += found.report.peak_bytes > forecast.bytes || forecast.bytes > options.memory_budget;
        wrong += found.report.steps_advanced_again != forecast.steps_advanced_again;
        wrong += found.report.disk_writes != forecast.disk_writes;
        writes = std::max(writes, found.report.disk_writes);
      }
      CAPTURE(steps, costs.write, costs.read);
      CHECK(wrong == 0);
      if (steps > 30 && costs.write < 5 && costs.read < 5) CHECK(writes > 1);
    }
  }
}

TEST_CASE("reverse, costs: a forecast is that of the run, with measured costs too") {
  const TemporaryDirectory directory;
  Row row{.steps = 300};
  const ReverseOptions options{.steps = 300, .memory_budget = 256_KiB, .spill = directory.path()};
  ReverseDriver driver(row.functions(), options);
  Numbers u = row.start(400);
  const Numbers before = u;
  const ReverseForecast forecast = driver.forecast(u);
  CHECK(same_bits(u, before));
  CHECK(row.advanced > 0);
  row.advanced = 0;
  driver.run(u);
  CHECK(driver.report().steps_advanced_again == forecast.steps_advanced_again);
  CHECK(driver.report().disk_writes == forecast.disk_writes);
  CHECK(driver.report().disk_reads == forecast.disk_reads);
  CHECK(driver.report().steps_advanced == row.advanced);
  // The first run of another driver measures.
  Row other{.steps = 300};
  ReverseDriver first(other.functions(), options);
  u = before;
  first.run(u);
  CHECK(first.report().steps_advanced == other.advanced);
  CHECK(other.advanced > 300 + first.report().steps_advanced_again);
}

TEST_CASE("reverse, costs: the state is put back where a measured step throws") {
  const TemporaryDirectory directory(quick_folder());
  Row row{.steps = 3000};
  ReverseFunctions<Numbers> functions = row.functions();
  functions.advance = [&](Numbers& u, std::uint64_t n) {
    row.advance(u, n);
    throw std::runtime_error("step " + std::to_string(n));
  };
  const ReverseOptions options{.steps = 3000, .memory_budget = 600_KiB, .spill = directory.path()};
  Numbers u = row.start(50);
  CHECK_THROWS_AS(ReverseDriver(functions, options).forecast(u), std::runtime_error);
  CHECK(row.advanced == 1);
  CHECK(same_bits(u, row.start(50)));
}

TEST_CASE("reverse, costs: errors of the directory come before the first step") {
  Row row{.steps = 3000};
  Numbers u = row.start(50);
  const ReverseOptions options{.steps = 3000, .memory_budget = 600_KiB, .spill = "/nowhere/at-all"};
  CHECK_THROWS_AS(ReverseDriver(row.functions(), options).run(u), FileError);
  CHECK(row.advanced == 0);
}

TEST_CASE("reverse, costs: a disk with room for a few states is measured") {
  const TemporaryDirectory directory;
  const ReverseOptions options{.steps = 300, .memory_budget = 256_KiB, .spill = directory.path()};
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit low{.rlim_cur = 1'500'000, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
  Found found;
  try {
    found = found_by_driver(300, 400, options);
  } catch (...) {
    setrlimit(RLIMIT_FSIZE, &before);
    throw;
  }
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(found == plainly(300, 400));
}

TEST_CASE("reverse, costs: a run whose states all fit in memory does not look at the disk") {
  const TemporaryDirectory directory;
  Row row{.steps = 50};
  ReverseDriver driver(row.functions(), {.steps = 50, .spill = directory.path()});
  Numbers u = row.start(10);
  const ReverseForecast forecast = driver.forecast(u);
  CHECK(row.advanced == 0);
  CHECK(forecast.steps_advanced_again == 0);
  driver.run(u);
  CHECK(row.advanced == 50);
  CHECK(driver.report().disk_writes == 0);
}

}  // namespace reverse_costs_test
