#include "checkpoint/chains/two_tier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/checkpoint/chains/snapshot_machine.h"

namespace two_tier_test {

using namespace palimpsest;
using Catch::Matchers::WithinAbs;
using tests::SnapshotMachine;

namespace {

constexpr DiskCosts costs[] = {{0, 0},   {2, 2}, {0, 3},       {5, 0},     {1, 4},
                               {20, 20}, {7, 1}, {0.25, 0.75}, {1e3, 1e3}, {1.0 / 3, 2.0 / 3}};

/// The lowest cost, by searching all possible actions. States in memory and on disk are sets; a
/// snapshot can be dropped at any time, and a state written at any time.
double least_cost(std::uint32_t steps, std::uint32_t slots, DiskCosts cost) {
  using State = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  using Entry = std::pair<double, State>;  // steps left, current state (or `steps`), memory, disk
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::map<State, double> best;
  const auto reach = [&](double total, const State& state) {
    const auto [at, fresh] = best.try_emplace(state, total);
    if (!fresh && at->second <= total) return;
    at->second = total;
    open.emplace(total, state);
  };
  reach(0, {steps, 0, 0, 0});
  for (;;) {
    const auto [total, state] = open.top();
    open.pop();
    if (total > best[state]) continue;
    const auto [left, at, memory, disk] = state;
    if (left == 0) return total;
    for (std::uint32_t k = 0; k < left; ++k) {
      if ((memory >> k & 1) != 0) {
        reach(total, {left, k, memory, disk});
        reach(total, {left, at, memory & ~(1u << k), disk});
      }
      if ((disk >> k & 1) != 0) reach(total + cost.read, {left, k, memory, disk});
    }
    if (at == steps) continue;
    if (at + 1 < left) reach(total + 1, {left, at + 1, memory, disk});
    if (at + 1 == left) {
      const std::uint32_t below = (1u << at) - 1;
      reach(total + 1, {left - 1, steps, memory & below, disk & below});
    }
    if (static_cast<std::uint32_t>(__builtin_popcount(memory)) < slots) {
      reach(total, {left, at, memory | 1u << at, disk});
    }
    reach(total + cost.write, {left, at, memory, disk | 1u << at});
  }
}

/// The same by dynamic programming over persistent schedules, in which a stored state stays.
class Recurrence {
 public:
  Recurrence(std::uint32_t steps, std::uint32_t slots, DiskCosts cost) : cost_(cost) {
    const std::vector<double> row(steps + 1, std::numeric_limits<double>::infinity());
    for (auto* table : {&loose_, &memory_, &disk_}) table->assign(slots + 1, row);
    for (std::uint32_t s = 0; s <= slots; ++s) {
      loose_[s][1] = memory_[s][1] = disk_[s][1] = 1;
      for (std::uint32_t n = 2; n <= steps; ++n) {
        for (std::uint32_t m = 1; m < n; ++m) {
          const double rest = m + loose_[s][n - m];
          memory_[s][n] = std::min(memory_[s][n], rest + memory_[s][m]);
          disk_[s][n] = std::min(disk_[s][n], rest + cost.read + from_disk(s, m));
        }
        loose_[s][n] = cost_.write + from_disk(s, n);
        if (s > 0) loose_[s][n] = std::min(loose_[s][n], memory_[s - 1][n]);
      }
    }
  }
  double least(std::uint32_t slots, std::uint32_t steps) const { return loose_[slots][steps]; }

 private:
  double from_disk(std::uint32_t s, std::uint32_t n) const {
    return s > 0 ? std::min(disk_[s][n], memory_[s - 1][n]) : disk_[s][n];
  }

  DiskCosts cost_;
  // By free slots and steps. The first state is current and stored nowhere, in memory, or on disk.
  std::vector<std::vector<double>> loose_, memory_, disk_;
};

double cost_of(const SnapshotMachine& machine, DiskCosts cost) {
  return static_cast<double>(machine.forward_steps) +
         cost.write * static_cast<double>(machine.writes) +
         cost.read * static_cast<double>(machine.reads);
}

}  // namespace

TEST_CASE("two tiers: counts that others published") {
  struct Row {
    DiskCosts cost;
    std::uint64_t forward, writes, reads;
  };
  for (const Row& row : {Row{{1e6, 1e6}, 55, 0, 0}, {{0, 0}, 19, 9, 9}, {{2, 2}, 28, 2, 2}}) {
    const TwoTierSchedule schedule(10, 1, row.cost);
    CHECK(schedule.forward_steps() == row.forward);
    CHECK(schedule.writes() == row.writes);
    CHECK(schedule.reads() == row.reads);
  }
}

TEST_CASE("two tiers: the least cost of any schedule, short chains") {
  for (const DiskCosts& cost : costs) {
    for (std::uint32_t slots = 1; slots <= 3; ++slots) {
      for (std::uint32_t steps = 1; steps <= 6; ++steps) {
        CAPTURE(cost.write, cost.read, slots, steps);
        SnapshotMachine machine(steps, slots);
        machine.run_all(TwoTierSchedule(steps, slots, cost));
        CHECK_THAT(cost_of(machine, cost), WithinAbs(least_cost(steps, slots, cost), 1e-9));
      }
    }
  }
}

TEST_CASE("two tiers: the least cost of any persistent schedule") {
  constexpr std::uint32_t most = 150;
  std::size_t wrong = 0;
  for (const DiskCosts& cost : costs) {
    const Recurrence recurrence(most, 4, cost);
    for (std::uint32_t slots = 1; slots <= 4; ++slots) {
      for (std::uint32_t steps = 1; steps <= most; ++steps) {
        const TwoTierSchedule schedule(steps, slots, cost);
        SnapshotMachine machine(steps, slots);
        machine.run_all(schedule);
        wrong += std::abs(cost_of(machine, cost) - recurrence.least(slots, steps)) > 1e-7;
        wrong += machine.forward_steps != schedule.forward_steps();
        wrong += machine.writes != schedule.writes();
        wrong += machine.reads != schedule.reads();
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("two tiers: a long chain, and no need of the disk") {
  constexpr DiskCosts cost{30, 20};
  SnapshotMachine machine(300'000, 100);
  machine.run_all(TwoTierSchedule(300'000, 100, cost));
  CHECK(cost_of(machine, cost) < static_cast<double>(binomial_forward_steps(300'000, 100)));
  CHECK(machine.writes > 0);
  CHECK(machine.actions < 4 * 300'000);
  CHECK(TwoTierSchedule(80, 80, cost).writes() == 0);
  CHECK(TwoTierSchedule(0, 1, cost).next() == std::nullopt);
}

TEST_CASE("two tiers: settings that make no sense are errors") {
  CHECK_THROWS_AS(TwoTierSchedule(5, 0, {1, 1}), ArgumentError);
  CHECK_THROWS_AS(TwoTierSchedule(5, 1, {-1, 1}), ArgumentError);
  CHECK_THROWS_AS(TwoTierSchedule(5, 1, {1, std::nan("")}), ArgumentError);
  CHECK_THROWS_AS(TwoTierSchedule(5, 1, {INFINITY, 1}), ArgumentError);
}

}  // namespace two_tier_test
