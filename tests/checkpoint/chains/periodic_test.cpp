#include "checkpoint/chains/periodic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/error.h"
#include "checkpoint/chains/two_tier.h"
#include "tests/catch.h"
#include "tests/checkpoint/chains/snapshot_machine.h"

namespace periodic_test {

using namespace palimpsest;
using tests::SnapshotMachine;

namespace {

constexpr DiskCosts costs[] = {{0, 0}, {2, 2}, {0, 3}, {20, 20}, {0.25, 0.75}, {500, 300}};

double cost_of_sweep_and_reversal(std::uint32_t steps, std::uint32_t snapshots, DiskCosts cost) {
  SnapshotMachine machine(steps, snapshots);
  PeriodicSnapshots chosen(snapshots, cost);
  machine.sweep(chosen);
  CHECK(chosen.steps() == steps);
  const std::uint64_t swept = machine.forward_steps;
  const PeriodicReversal reversal(chosen);
  machine.run_all(reversal);
  CHECK(machine.forward_steps - swept == reversal.forward_steps());
  const std::uint32_t first = std::max(chosen.period(), snapshots);
  const std::uint32_t behind = steps > first ? steps - first : 0;
  CHECK(machine.writes == 1 + (behind + chosen.period() - 1) / chosen.period());
  return static_cast<double>(machine.forward_steps) +
         cost.write * static_cast<double>(machine.writes) +
         cost.read * static_cast<double>(machine.reads);
}

}  // namespace

TEST_CASE("periodic: no other period costs less a step") {
  for (const DiskCosts& cost : costs) {
    for (std::uint32_t snapshots = 1; snapshots <= 6; ++snapshots) {
      const auto a_step = [&](std::uint32_t length) {
        const auto steps = static_cast<double>(binomial_forward_steps(length, snapshots));
        return 1 + (steps + cost.write + cost.read) / length;
      };
      double least = std::numeric_limits<double>::infinity();
      for (std::uint32_t length = 1; length < 3'000; ++length) {
        least = std::min(least, a_step(length));
      }
      CAPTURE(cost.write, cost.read, snapshots);
      CHECK(a_step(best_period(snapshots, cost)) <= least * (1 + 1e-12));
    }
  }
}

TEST_CASE("periodic: every length is reversed, long ones nearly as cheaply as any schedule can") {
  for (const DiskCosts& cost : costs) {
    for (std::uint32_t snapshots = 1; snapshots <= 5; ++snapshots) {
      CAPTURE(cost.write, cost.read, snapshots);
      for (std::uint32_t steps = 1; steps <= 60; ++steps) {
        cost_of_sweep_and_reversal(steps, snapshots, cost);
      }
      // If a read costs as much as many steps, other schedules read a state several times and are
      // cheaper.
      if (cost.read > 100 && snapshots < 3) continue;
      const std::uint32_t steps = 40'000;
      const TwoTierSchedule best(steps, snapshots, cost);
      const double least = static_cast<double>(best.forward_steps()) +
                           cost.write * static_cast<double>(best.writes()) +
                           cost.read * static_cast<double>(best.reads());
      CHECK(cost_of_sweep_and_reversal(steps, snapshots, cost) < 1.1 * least);
    }
  }
}

TEST_CASE("periodic: nothing to reverse, and settings that make no sense") {
  CHECK(PeriodicReversal(PeriodicSnapshots(3, {1, 1})).next() == std::nullopt);
  CHECK_THROWS_AS(PeriodicSnapshots(0, {1, 1}), ArgumentError);
  CHECK_THROWS_AS(PeriodicSnapshots(1, {-1, 1}), ArgumentError);
  CHECK_THROWS_AS(best_period(1, {1, std::nan("")}), ArgumentError);
}

TEST_CASE("two tiers: chains longer than are planned exactly") {
  constexpr DiskCosts cost{30, 20};
  for (const std::uint32_t snapshots : {1u, 3u, 100u}) {
    const auto cost_of = [&](std::uint32_t steps) {
      const TwoTierSchedule schedule(steps, snapshots, cost);
      SnapshotMachine machine(steps, snapshots);
      machine.run_all(schedule);
      CHECK(machine.forward_steps == schedule.forward_steps());
      CHECK(machine.writes == schedule.writes());
      CHECK(machine.reads == schedule.reads());
      return static_cast<double>(machine.forward_steps) +
             cost.write * static_cast<double>(machine.writes) +
             cost.read * static_cast<double>(machine.reads);
    };
    // The cost per step of exact schedules, which does not depend on the length.
    const double exact = (cost_of(65'000) - cost_of(35'000)) / 30'000;
    const double longer = (cost_of(400'000) - cost_of(65'000)) / 335'000;
    CAPTURE(snapshots);
    CHECK(longer < exact * 1.001);
  }
}

}  // namespace periodic_test
