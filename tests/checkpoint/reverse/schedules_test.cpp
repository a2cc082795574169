#include <rapidcheck/catch.h>

#include <algorithm>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/chains/online.h"
#include "checkpoint/chains/two_tier.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/temporary_directory.h"

namespace reverse_schedules_test {

using namespace palimpsest;
using namespace palimpsest::tests;

TEST_CASE("reverse: known length: the closed form of steps advanced again") {
  std::size_t wrong = 0;
  for (const std::uint64_t states : {1, 2, 3, 5, 10, 40}) {
    const Bytes budget = budget_for(states, 1, {.steps = 5000});
    for (const std::uint64_t steps : {0, 1, 2, 3, 7, 20, 100, 333, 1000}) {
      const auto s = static_cast<std::uint32_t>(states);
      const auto n = static_cast<std::uint32_t>(steps);
      const Found found = found_by_driver(steps, 1, {.steps = steps, .memory_budget = budget});
      const std::uint64_t expected = binomial_forward_steps(n + 1, s) - (n + 1) - n;
      wrong += found.report.steps_advanced_again != expected;
      wrong += found.report.steps_advanced != expected + steps;
      wrong += found.report.steps_reversed != steps;
      wrong += found.report.peak_bytes > budget;
      wrong += found != plainly(steps, 1);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("reverse: unknown length: the steps of online snapshots, with published comparisons") {
  struct Case {
    std::uint32_t steps, snapshots;
    std::uint64_t again;
  };
  for (const auto& [steps, snapshots, again] :
       {Case{100, 10, 126}, {500, 5, 2149}, {500, 20, 750}, {1000, 20, 1750}, {5000, 50, 8626}}) {
    const Bytes budget = budget_for(snapshots, 1, {});
    const Found found = found_by_driver(steps, 1, {.memory_budget = budget});
    CHECK(found.report.steps_advanced_again == again);
    CHECK(found.report.peak_bytes <= budget);
    CHECK(found.report.steps == steps);
    OnlineSnapshots chosen(snapshots);
    while (chosen.steps() < steps) chosen.before_step();
    CHECK(found.report.steps_advanced_again == OnlineReversal(chosen).forward_steps() - steps);
    CHECK(found == plainly(steps, 1));
  }
}

TEST_CASE("reverse: two tiers: steps and traffic as forecast") {
  const TemporaryDirectory directory;
  for (const DiskCosts costs : {DiskCosts{0, 0}, {2, 2}, {7, 1}, {30, 30}}) {
    for (const std::uint64_t steps : {1, 2, 60, 400}) {
      ReverseOptions options{.steps = steps, .spill = directory.path(), .disk_costs = costs};
      options.memory_budget = smallest_budget(5, options) + 1500 + table_bytes(steps);
      Row row{.steps = steps};
      const ReverseDriver driver(row.functions(), options);
      Numbers u = row.start(5);
      const ReverseForecast forecast = driver.forecast(u);
      const Found found = found_by_driver(steps, 5, options);
      const auto states = static_cast<std::uint32_t>(forecast.states_in_memory);
      const TwoTierSchedule best(static_cast<std::uint32_t>(steps) + 1, states, costs);
      if (states < steps) {
        CHECK(forecast.steps_advanced_again == best.forward_steps() - 2 * steps - 1);
        CHECK(forecast.disk_writes == best.writes());
      }
      CHECK(found.report.steps_advanced_again == forecast.steps_advanced_again);
      CHECK(found.report.disk_writes == forecast.disk_writes);
      CHECK(found.report.disk_reads == forecast.disk_reads);
      CHECK(found.report.bytes_written == forecast.bytes_written);
      CHECK(found.report.bytes_read == forecast.bytes_read);
      CHECK(found.report.peak_bytes <= options.memory_budget);
      CHECK(found == plainly(steps, 5));
    }
  }
  CHECK(directory.files().empty());
}

TEST_CASE("reverse: measured costs of the disk") {
  const TemporaryDirectory directory;
  const ReverseOptions options{.steps = 300, .memory_budget = 256_KiB, .spill = directory.path()};
  const Found found = found_by_driver(300, 400, options);
  CHECK(found == plainly(300, 400));
  CHECK(found.report.peak_bytes <= options.memory_budget);
}

TEST_CASE("reverse: any chain, budget, codec and way: the bits of the plain reversal") {
  const TemporaryDirectory directory;
  rc::prop("bits", [&] {
    const auto steps = *rc::gen::inRange<std::uint64_t>(0, 120);
    const auto size = *rc::gen::inRange<std::size_t>(1, 300);
    const auto states = *rc::gen::inRange<std::uint64_t>(1, 12);
    ReverseOptions options;
    if (*rc::gen::arbitrary<bool>()) options.steps = steps;
    if (*rc::gen::arbitrary<bool>()) {
      options.spill = directory.path();
      options.disk_costs = DiskCosts{static_cast<double>(*rc::gen::inRange(0, 9)),
                                     static_cast<double>(*rc::gen::inRange(0, 9))};
    }
    options.sizes_change = *rc::gen::arbitrary<bool>();
    options.codec = *rc::gen::element(ReverseCodec::none, ReverseCodec::zstd);
    if (options.sizes_change && options.codec == ReverseCodec::zstd) {
      options.largest_state = static_cast<Bytes>(size * sizeof(double));
    }
    options.check = *rc::gen::arbitrary<bool>();
    options.memory_budget =
        smallest_budget(size, options) + static_cast<Bytes>(states * size * sizeof(double));
    // Tables of states on disk count too, and depend on the number of steps.
    if (options.steps && !options.spill.empty()) options.memory_budget += 60 * 1024;
    const Found found = found_by_driver(steps, size, options);
    RC_ASSERT(found == plainly(steps, size));
    RC_ASSERT(found.report.peak_bytes <= options.memory_budget);
    RC_ASSERT(found.report.finished);
  });
}

}  // namespace reverse_schedules_test
