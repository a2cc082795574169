#include "checkpoint/chains/binomial.h"

#include <algorithm>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/checkpoint/chains/snapshot_machine.h"

namespace binomial_test {

using namespace palimpsest;
using tests::SnapshotMachine;

namespace {

/// The lowest number of forward steps and, among these, the lowest number of stores.
struct Best {
  std::uint64_t forward;
  std::uint64_t stores;
  auto operator<=>(const Best&) const = default;
};

}  // namespace

TEST_CASE("binomial: counts that others published") {
  struct Row {
    std::uint32_t steps, snapshots;
    std::uint64_t forward;
  };
  const Row rows[] = {{10, 3, 25},   {100, 2, 945}, {100, 3, 590}, {100, 5, 416},
                      {100, 7, 355}, {10, 1, 55},   {1, 1, 1},     {0, 4, 0},
                      {2, 1, 3},     {7, 6, 13},    {7, 1000, 13}};
  for (const auto& [steps, snapshots, forward] : rows) {
    CAPTURE(steps, snapshots);
    CHECK(binomial_forward_steps(steps, snapshots) == forward);
    SnapshotMachine machine(steps, snapshots);
    CHECK(machine.run_all(BinomialSchedule(steps, snapshots)).forward_steps == forward);
  }
}

TEST_CASE("binomial: the schedule is the closed form is the recurrence, with fewest stores") {
  constexpr std::uint32_t most_steps = 400;
  constexpr std::uint32_t most_snapshots = 40;
  // For the chain whose first state is already stored.
  std::vector<Best> fewer;
  std::size_t wrong = 0;
  for (std::uint32_t s = 1; s <= most_snapshots; ++s) {
    std::vector<Best> best(most_steps + 1, Best{~0ull, 0});
    best[1] = {1, 0};
    for (std::uint32_t n = 2; n <= most_steps; ++n) {
      for (std::uint32_t m = s == 1 ? n - 1 : 1; m < n; ++m) {
        const Best back = n - m == 1 ? Best{1, 0} : fewer[n - m];
        best[n] = std::min(best[n], Best{m + best[m].forward + back.forward,
                                         best[m].stores + back.stores + (n - m > 1 ? 1 : 0)});
      }
    }
    for (std::uint32_t n = 2; n <= most_steps; ++n) {
      SnapshotMachine machine(n, s);
      machine.run_all(BinomialSchedule(n, s));
      wrong += binomial_forward_steps(n, s) != best[n].forward;
      wrong += machine.forward_steps != best[n].forward;
      wrong += machine.stores != best[n].stores + 1;
      wrong += machine.actions > 4 * n;
    }
    fewer = std::move(best);
  }
  CHECK(wrong == 0);
}

TEST_CASE("binomial: long chains") {
  for (const auto& [steps, snapshots] :
       {std::pair{1'000'000u, 50u}, {1'000'000u, 3u}, {100'000u, 99'998u}, {300'000u, 1000u}}) {
    SnapshotMachine machine(steps, snapshots);
    machine.run_all(BinomialSchedule(steps, snapshots));
    CHECK(machine.forward_steps == binomial_forward_steps(steps, snapshots));
    CHECK(machine.actions <= 4ull * steps);
  }
  // C(54, 4) < 10⁶ ≤ C(55, 5).
  CHECK(binomial_forward_steps(1'000'000, 50) == 6'000'000 - 1 - 51 - 1326 - 23426 - 316251);
  // n (n + 1) / 2 for the largest n.
  CHECK(binomial_forward_steps(4'294'967'295u, 1) == 2'147'483'648ull * 4'294'967'295ull);
  CHECK(binomial_forward_steps(4'294'967'295u, 4'294'967'295u) == 2 * 4'294'967'295ull - 1);
}

TEST_CASE("binomial: part of a chain") {
  BinomialSchedule schedule(2, 1, 7);
  using Kind = ChainAction::Kind;
  const ChainAction expected[] = {{Kind::store, 7},
                                  {Kind::advance, 8},
                                  {Kind::reverse, 8},
                                  {Kind::restore, 7},
                                  {Kind::reverse, 7}};
  for (const ChainAction& action : expected) CHECK(schedule.next() == action);
  CHECK(schedule.next() == std::nullopt);
}

/// All actions of a schedule, and how many rows and single actions it gave.
struct Expanded {
  std::vector<ChainAction> actions;
  std::size_t calls = 0;

  Expanded(BinomialSchedule schedule, bool takes_rows) {
    using Kind = ChainAction::Kind;
    for (auto action = schedule.next(); action; action = schedule.next(), ++calls) {
      actions.push_back(*action);
      if (!takes_rows) continue;
      if (action->kind == Kind::store) {
        const ChainRow row = schedule.take_stores();
        for (std::uint32_t i = 0; i < row.count; ++i) {
          actions.push_back({Kind::advance, row.step + i});
          actions.push_back({Kind::store, row.step + i, row.slot + i});
        }
      }
      if (action->kind == Kind::restore) {
        const ChainRow row = schedule.take_reversals();
        for (std::uint32_t i = 0; i < row.count; ++i) {
          if (i > 0) actions.push_back({Kind::restore, row.step - i, row.slot - i});
          actions.push_back({Kind::reverse, row.step - i});
        }
      }
    }
  }
};

TEST_CASE("binomial: rows are the actions that they replace") {
  std::size_t wrong = 0;
  for (std::uint32_t n = 1; n <= 80; ++n) {
    for (std::uint32_t s = 1; s <= n; ++s) {
      const BinomialSchedule schedule(n, s);
      wrong += Expanded(schedule, true).actions != Expanded(schedule, false).actions;
    }
  }
  CHECK(wrong == 0);
  CHECK(Expanded(BinomialSchedule(1'000, 1'000), true).calls < 10);
}

TEST_CASE("binomial: no snapshots are an error") {
  CHECK_THROWS_AS(binomial_forward_steps(5, 0), ArgumentError);
  CHECK_THROWS_AS(BinomialSchedule(5, 0), ArgumentError);
}

}  // namespace binomial_test
