#include "checkpoint/chains/online.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <random>
#include <set>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/checkpoint/chains/snapshot_machine.h"

#include <rapidcheck/catch.h>

namespace online_test {

using namespace palimpsest;
using Kind = ChainAction::Kind;
using tests::SnapshotMachine;

namespace {

/// Forward steps of sweep and reversal together if the length were known in advance.
std::uint64_t least_forward_steps(std::uint32_t steps, std::uint32_t snapshots) {
  return binomial_forward_steps(steps + 1, snapshots) - 1;
}

std::uint64_t forward_steps(const OnlineSnapshots& ended) {
  return ended.steps() + OnlineReversal(ended).forward_steps();
}

/// β(s, r) = C(s + r, r).
std::uint64_t beta(std::uint64_t s, std::uint64_t r) {
  std::uint64_t result = 1;
  for (std::uint64_t k = 1; k <= std::min(s, r); ++k) result = result * (std::max(s, r) + k) / k;
  return result;
}

/// The least r with β(s, r) > n.
std::uint32_t repetitions(std::uint32_t steps, std::uint32_t snapshots) {
  std::uint32_t r = 0;
  while (beta(snapshots, r) <= steps) ++r;
  return r;
}

/// The lowest number of forward steps of a reversal that starts from the states in the mask `held`.
/// States stay until their steps are reversed. Searches all possible actions.
std::uint64_t least_reversal(std::uint32_t steps, std::uint32_t slots, std::uint32_t held) {
  struct State {
    std::uint32_t left, at, memory;  // steps left; current state, or `steps`; states held
    std::uint64_t total;
  };
  constexpr std::uint64_t unseen = ~0ull;
  std::vector<std::uint64_t> best((steps + 1ull) * (steps + 1ull) << steps, unseen);
  std::deque<State> open;
  const auto reach = [&](State state, bool runs) {
    const std::size_t index = (state.left * (steps + 1ull) + state.at) << steps | state.memory;
    state.total += runs;
    if (state.total >= best[index]) return;
    best[index] = state.total;
    runs ? open.push_back(state) : open.push_front(state);
  };
  reach({steps, steps, held, 0}, false);
  for (;;) {
    const State state = open.front();
    open.pop_front();
    const auto [left, at, memory, total] = state;
    if (left == 0) return total;
    for (std::uint32_t k = 0; k < left; ++k) {
      if ((memory >> k & 1) != 0) reach({left, k, memory, total}, false);
    }
    if (at == steps) continue;
    if (at + 1 < left) reach({left, at + 1, memory, total}, true);
    if (at + 1 == left) reach({left - 1, steps, memory & ~(1u << at), total}, true);
    if (static_cast<std::uint32_t>(std::popcount(memory)) < slots) {
      reach({left, at, memory | 1u << at, total}, false);
    }
  }
}

std::vector<HeldState> held_states(std::uint32_t mask, std::uint32_t first_slot) {
  std::vector<HeldState> held;
  for (; mask != 0; mask &= mask - 1) {
    held.push_back({static_cast<std::uint32_t>(std::countr_zero(mask)), first_slot++});
  }
  return held;
}

/// Whether an online choice of states exists for chains of any length below β(s, r) ≤ 64. Its
/// forward steps may exceed the optimum by at most `excess[q]`, where q is the lowest possible
/// number of repetitions. Follows all choices at once. With `minimal`, no step may run more than q
/// times.
bool possible(std::uint32_t snapshots, const std::vector<std::uint64_t>& excess, bool minimal) {
  std::set<std::uint64_t> choices{1};
  const auto serves = [&](std::uint64_t choice, std::uint32_t steps, std::uint32_t r) {
    std::uint64_t total = steps;
    std::uint32_t left = snapshots;
    for (std::uint64_t mask = choice; mask != 0; mask &= mask - 1, --left) {
      const auto rest = mask & (mask - 1);
      const int end = rest != 0 ? std::countr_zero(rest) : static_cast<int>(steps);
      const auto gap = static_cast<std::uint32_t>(end - std::countr_zero(mask));
      if (minimal && gap > beta(left, r - 1)) return false;
      total += binomial_forward_steps(gap, left);
    }
    return total <= least_forward_steps(steps, snapshots) + excess[r];
  };
  for (std::uint32_t steps = 2; !choices.empty(); ++steps) {
    const std::uint32_t r = repetitions(steps, snapshots);
    if (r >= excess.size()) return true;
    std::set<std::uint64_t> next;
    const auto add = [&](std::uint64_t choice) {
      if (serves(choice, steps, r)) next.insert(choice);
    };
    for (const std::uint64_t choice : choices) {
      const std::uint64_t stored = choice | 1ull << (steps - 1);
      add(choice);
      if (static_cast<std::uint32_t>(std::popcount(choice)) < snapshots) add(stored);
      for (std::uint64_t mask = choice & ~1ull; mask != 0; mask &= mask - 1) {
        add(stored & ~(mask & -mask));
      }
    }
    choices = std::move(next);
  }
  return false;
}

/// For each number of repetitions, the largest excess of forward steps over the optimum.
std::vector<std::uint64_t> worst_excess(std::uint32_t snapshots, std::uint32_t most_repetitions) {
  std::vector<std::uint64_t> worst(most_repetitions + 1);
  OnlineSnapshots online(snapshots);
  for (;;) {
    online.before_step();
    const std::uint32_t r = repetitions(online.steps(), snapshots);
    if (r > most_repetitions) return worst;
    const std::uint64_t least = least_forward_steps(online.steps(), snapshots);
    worst[r] = std::max(worst[r], forward_steps(online) - least);
  }
}

}  // namespace

TEST_CASE("online: what is stored where, three snapshots") {
  constexpr std::uint32_t no = ~0u;
  // Corners are 0, 1, 2; 4, 7; 10, 16; 20, 30.
  constexpr std::uint32_t slots[] = {0,  1,  2, no, 2,  no, 1,  1,  no, no, 1,
                                     no, no, 2, no, no, 2,  no, no, no, 2,  no};
  OnlineSnapshots online(3);
  std::vector<std::uint32_t> got;
  for (std::uint32_t k = 0; k < std::size(slots); ++k) {
    const std::optional<ChainAction> store = online.before_step();
    got.push_back(store ? store->slot : no);
    if (store) CHECK(*store == ChainAction{Kind::store, k, store->slot});
  }
  CHECK(got == std::vector(std::begin(slots), std::end(slots)));
}

TEST_CASE("online: least repetitions, the bound, and the least forward steps up to two") {
  std::size_t wrong = 0;
  for (std::uint32_t s = 1; s <= 12; ++s) {
    for (std::uint32_t n = 0; n <= 400; ++n) {
      OnlineSnapshots online(s);
      SnapshotMachine machine(n, s);
      machine.sweep(online);
      const std::uint64_t stores = machine.stores;
      const OnlineReversal reversal(online);
      machine.run_all(reversal);
      const std::uint32_t r = repetitions(n, s);
      const std::uint64_t least = least_forward_steps(n, s);
      wrong += machine.forward_steps != n + reversal.forward_steps();
      wrong += machine.forward_steps < least;
      wrong += r <= 2 && machine.forward_steps != least;
      wrong += machine.forward_steps > (r + 1ull) * n;
      wrong += n > 0 && (r + 1ull) * n != least + beta(s + 1, r - 1) - r;
      wrong += machine.forward_steps > 1.1 * static_cast<double>(least);
      wrong += n > 0 && machine.most_runs() != r + 1;
      wrong += machine.actions - stores > 4ull * n;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("online: long chains") {
  struct Row {
    std::uint32_t steps, snapshots;
    double most;  // limit, relative to the lowest number of forward steps
  };
  for (const auto& [steps, snapshots, most] : {Row{1'000'000, 50, 1.0001},
                                               {1'000'000, 5, 1.05},
                                               {1'000'000, 3, 1.01},
                                               {300'000, 1000, 1},
                                               {100'000, 99'998, 1},
                                               {20'000, 1, 1},
                                               {123'456, 20, 1.001}}) {
    CAPTURE(steps, snapshots);
    OnlineSnapshots online(snapshots);
    SnapshotMachine machine(steps, snapshots);
    machine.sweep(online).run_all(OnlineReversal(online));
    CHECK(machine.most_runs() == repetitions(steps, snapshots) + 1);
    CHECK(static_cast<double>(machine.forward_steps) <=
          most * static_cast<double>(least_forward_steps(steps, snapshots)));
  }
}

TEST_CASE("online: forward steps above the least") {
  constexpr std::uint64_t most[] = {0, 0, 0, 3, 17, 72};
  for (const auto& [r, most_snapshots] : {std::pair{3u, 40u}, {4u, 16u}, {5u, 12u}}) {
    for (std::uint32_t s = 1; s <= most_snapshots; ++s) {
      CAPTURE(s, r);
      CHECK(worst_excess(s, r)[r] <= most[r]);
    }
  }
}

TEST_CASE("online: no choice of states keeps nearer to the least") {
  const auto nearer = [](std::uint32_t s, std::uint32_t r, bool minimal) {
    std::vector<std::uint64_t> excess = worst_excess(s, r);
    CHECK(possible(s, excess, minimal));
    if (excess[r] == 0) return false;
    --excess[r];
    return possible(s, excess, minimal);
  };
  for (std::uint32_t r = 3; r <= 7; ++r) CHECK_FALSE(nearer(2, r, false));
  for (std::uint32_t r = 3; r <= 5; ++r) CHECK_FALSE(nearer(3, r, true));
  for (std::uint32_t s = 3; s <= 5; ++s) CHECK_FALSE(nearer(s, 3, false));
}

TEST_CASE("online: storing is rare and giving up looks at few states") {
  for (const auto& [s, r] : {std::pair{10u, 5u}, {20u, 4u}, {60u, 3u}, {150u, 2u}}) {
    CAPTURE(s, r);
    const auto first = static_cast<std::uint32_t>(beta(s, r - 1));
    const auto last = static_cast<std::uint32_t>(beta(s, r) - 1);
    OnlineSnapshots online(s);
    while (online.steps() < first) online.before_step();
    std::vector<HeldState> before(online.held().begin(), online.held().end());
    std::size_t stored = 0;
    std::size_t looked_at = 0;
    while (online.steps() < last) {
      const std::optional<ChainAction> store = online.before_step();
      if (!store) continue;
      ++stored;
      const auto same = std::mismatch(before.begin(), before.end(), online.held().begin()).first;
      looked_at += static_cast<std::size_t>(before.end() - same);
      before.assign(online.held().begin(), online.held().end());
    }
    const double steps = last - first;
    CHECK(static_cast<double>(stored) <= 1.1 * steps / r + s);
    CHECK(static_cast<double>(looked_at) <= steps * (r == 2 ? std::log2(s) : 1.3));
  }
}

TEST_CASE("online: the least forward steps from the states held") {
  for (std::uint32_t slots = 1; slots <= 4; ++slots) {
    for (std::uint32_t steps = 1; steps <= 7; ++steps) {
      for (std::uint32_t mask = 1; mask < 1u << steps; mask += 2) {
        const auto held = static_cast<std::uint32_t>(std::popcount(mask));
        if (held > slots) continue;
        CAPTURE(slots, steps, mask);
        const OnlineReversal reversal(held_states(mask, slots - held), steps, slots);
        CHECK(reversal.forward_steps() == least_reversal(steps, slots, mask));
      }
    }
  }
}

TEST_CASE("online: a reversal from any states held") {
  rc::prop("keeps the rules and takes the forward steps it says", [](std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t limit) {
      return static_cast<std::uint32_t>(random() % limit);
    };
    const std::uint32_t steps = 1 + below(200);
    const std::uint32_t snapshots = 1 + below(12);
    std::set<std::uint32_t> states{0};
    for (std::uint32_t k = below(snapshots); k > 0; --k) states.insert(below(steps));
    std::vector<std::uint32_t> slots(snapshots);
    for (std::uint32_t k = 0; k < snapshots; ++k) slots[k] = k;
    std::shuffle(slots.begin(), slots.end(), random);

    SnapshotMachine machine(steps, snapshots);
    std::vector<HeldState> held;
    for (const std::uint32_t state : states) {
      if (state > 0) machine.run({Kind::advance, state});
      held.push_back({state, slots[held.size()]});
      machine.run({Kind::store, state, held.back().slot});
    }
    const std::uint64_t before = machine.forward_steps;
    const OnlineReversal reversal(held, steps, snapshots);
    machine.run_all(reversal);
    RC_ASSERT(machine.forward_steps - before == reversal.forward_steps());
  });
}

TEST_CASE("online: a chain that ends before its first step, and one that goes on") {
  OnlineSnapshots online(2);
  CHECK(OnlineReversal(online).next() == std::nullopt);
  for (int k = 0; k < 5; ++k) online.before_step();
  const ChainAction expected[] = {{Kind::restore, 3, 1}, {Kind::advance, 4}, {Kind::reverse, 4},
                                  {Kind::restore, 3, 1}, {Kind::reverse, 3}, {Kind::restore, 0, 0},
                                  {Kind::advance, 1},    {Kind::store, 1, 1}};
  OnlineReversal reversal(online);
  for (const ChainAction& action : expected) CHECK(reversal.next() == action);
  // The reversal does not affect the online choice.
  CHECK(online.before_step() == std::nullopt);
  CHECK(online.before_step() == ChainAction{Kind::store, 6, 1});
}

TEST_CASE("online: no snapshots, and states that do not serve, are errors") {
  CHECK_THROWS_AS(OnlineSnapshots(0), ArgumentError);
  const auto reverse = [](std::vector<HeldState> held, std::uint32_t steps) {
    return OnlineReversal(held, steps, 3);
  };
  CHECK_NOTHROW(reverse({{0, 2}, {4, 0}}, 5));
  CHECK_NOTHROW(OnlineReversal(std::vector<HeldState>{{0, 4'000'000'000u}}, 5, ~0u));
  CHECK_THROWS_AS(reverse({}, 5), ArgumentError);
  CHECK_THROWS_AS(reverse({{1, 0}}, 5), ArgumentError);
  CHECK_THROWS_AS(reverse({{0, 0}}, 0), ArgumentError);
  CHECK_THROWS_AS(reverse({{0, 0}, {5, 1}}, 5), ArgumentError);
  CHECK_THROWS_AS(reverse({{0, 0}, {4, 1}, {2, 2}}, 5), ArgumentError);
  CHECK_THROWS_AS(reverse({{0, 1}, {2, 1}}, 5), ArgumentError);
  CHECK_THROWS_AS(reverse({{0, 3}}, 5), ArgumentError);
}

}  // namespace online_test
