#pragma once

#include "strategy/loops/advance.h"

namespace palimpsest {

/// Takes the states that `schedule` stores in a row after `action`, its last one. There are none if
/// `held` holds them elsewhere than in a row, or if the schedule knows no rows.
template <class Schedule>
ChainRow take_stores(Schedule& schedule, const ChainAction& action, const HeldStates& held) {
  if constexpr (requires { schedule.take_stores(); }) {
    const bool is_store = action.kind == ChainAction::Kind::store;
    if (is_store && held.is_plain(action)) return schedule.take_stores();
  }
  return {};
}

/// Stores the current state and makes those that follow in a row, if `action` begins one. Returns
/// false otherwise, without doing anything.
template <class Schedule>
bool store_row(Schedule& schedule, const ChainAction& action, HeldStates& held, Advance& advance,
               const Parts* outputs = nullptr) {
  const ChainRow row = take_stores(schedule, action, held);
  if (row.count == 0) return false;
  held.store(action, advance.state());
  advance.make(row, held, outputs);
  return true;
}

/// Takes the states whose steps `schedule` reverses in a row, from that of `action` on. There are
/// none where `take_stores` would find none.
template <class Schedule>
ChainRow take_reversals(Schedule& schedule, const ChainAction& action, const HeldStates& held) {
  if constexpr (requires { schedule.take_reversals(); }) {
    const bool is_restore = action.kind == ChainAction::Kind::restore;
    if (is_restore && held.is_plain(action)) return schedule.take_reversals();
  }
  return {};
}

}  // namespace palimpsest
