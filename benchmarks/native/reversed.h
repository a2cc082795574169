#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/chains/binomial.h"

namespace palimpsest::benchmarks::by_hand {

/// Reverses `steps` steps with the schedule of a `scan` that holds `states` states. `advance(step,
/// u, next)` makes the state after `u`; `reverse(step, u)` runs a step back. States are made where
/// they are held, and the first one is not copied. Nothing is allocated once the steps begin.
template <class State, class Advance, class Reverse>
void reverse_steps(std::uint32_t steps, std::uint32_t states, const State& first, Advance advance,
                   Reverse reverse) {
  using Kind = ChainAction::Kind;
  std::vector<State> held(states);  // slot 0 is `first`
  std::vector<State> free(2);
  BinomialSchedule schedule(steps, states);
  const State* u = &first;
  std::uint32_t at = 0;
  for (std::optional<ChainAction> action = schedule.next(); action;) {
    const ChainAction now = *std::exchange(action, schedule.next());
    switch (now.kind) {
      case Kind::store:
        if (now.slot > 0 && u != &held[now.slot]) held[now.slot] = *u;
        break;
      case Kind::restore:
        u = now.slot == 0 ? &first : &held[now.slot];
        at = now.step;
        break;
      case Kind::advance:
        for (; at < now.step; ++at) {
          const bool is_held = at + 1 == now.step && action->kind == Kind::store;
          State* const next = is_held ? &held[action->slot] : &free[u == &free[0] ? 1 : 0];
          advance(at, *u, *next);
          u = next;
        }
        break;
      case Kind::reverse:
        reverse(now.step, *u);
        break;
    }
  }
}

}  // namespace palimpsest::benchmarks::by_hand
