#pragma once

#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/usable_threads.h"
#include "strategy/loops/state_rows.h"

namespace palimpsest {

/// Begins to read the next state that `schedule` restores from disk. `next` is the schedule's next
/// action.
template <class Schedule>
void prefetch_next(const Schedule& schedule, const std::optional<ChainAction>& next,
                   HeldStates& held) {
  if constexpr (requires { schedule.next_read(); }) {
    const bool follows = next && next->tier == ChainAction::Tier::disk;
    const std::optional<ChainAction> read = follows ? next : schedule.next_read();
    if (read) held.prefetch(*read);
  }
}

/// Carries out the rest of a schedule. Calls `reverse_row(row)` for reversals in a row,
/// `reverse(step, state)` for the others, and `done(action)` after each action outside of rows.
template <class Schedule, class Reverse, class ReverseRow, class Done>
void reverse_steps(Schedule& schedule, HeldStates& held, Advance& advance, Reverse reverse,
                   ReverseRow reverse_row, Done done) {
  for (std::optional<ChainAction> now = schedule.next(); now;) {
    if (store_row(schedule, *now, held, advance)) {
      now = schedule.next();
      continue;
    }
    if (const ChainRow row = take_reversals(schedule, *now, held); row.count > 0) {
      reverse_row(row);
      now = schedule.next();
      continue;
    }
    const std::optional<ChainAction> next = schedule.next();
    if (now->kind == ChainAction::Kind::reverse) {
      prefetch_next(schedule, next, held);
      reverse(now->step, advance.state());
    } else {
      advance.carry_out(*now, *next, held);
    }
    done(*now);
    now = next;  // copied last: a processor waits when it reads wide what it has just written
  }
}

/// Runs `f` and `g`, on two threads if one is free. Then rethrows what `f` threw, or else what `g`
/// threw.
template <class F, class G>
void run_both(F f, G g) {
  std::exception_ptr errors[2];
  // If TBB passed exceptions on, it would cancel loops in the other function.
  const auto attempt = [&](auto& run, std::exception_ptr& error) {
    try {
      run();
    } catch (...) {
      error = std::current_exception();
    }
  };
  // Both run even if a group of the caller's tasks is cancelled.
  tbb::task_group_context own(tbb::task_group_context::isolated);
  // While it waits here, a thread must not take other work, such as another loop.
  tbb::this_task_arena::isolate([&] {
    // The caller runs the last function; another thread may take the first.
    with_threads([&] {
      tbb::parallel_invoke([&] { attempt(f, errors[0]); }, [&] { attempt(g, errors[1]); }, own);
    });
  });
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

/// Likewise, while another thread, if one is free, makes the states of the steps to be reversed
/// next. It makes at most as many as half of `blocks` can hold, and stops early when the reversals
/// are done.
template <class Schedule, class Reverse>
void reverse_steps_ahead(Schedule& schedule, HeldStates& held, Advance& advance,
                         const StateBlock& block, std::span<const Addresses> blocks,
                         Reverse reverse) {
  struct Ready {
    std::uint32_t step;
    const Addresses* state;
  };
  std::vector<Ready> at_hand;
  std::vector<Ready> made;
  std::span<const Addresses> free = blocks.first(blocks.size() / 2);
  std::span<const Addresses> in_use = blocks.subspan(free.size(), free.size());
  std::optional<ChainAction> action = schedule.next();
  std::atomic<bool> is_awaited = true;
  const auto make = [&] {
    while (action && made.size() < free.size() && (made.empty() || !is_awaited)) {
      const ChainAction now = *std::exchange(action, schedule.next());
      const Addresses& where = free[made.size()];
      if (now.kind == ChainAction::Kind::reverse) {
        block.copy(advance.state(), where);
        made.push_back({now.step, &where});
        prefetch_next(schedule, action, held);
      } else {
        advance.carry_out(now, *action, held, nullptr, &where);
      }
    }
  };
  const auto reverse_those_at_hand = [&] {
    for (const Ready& ready : at_hand) reverse(ready.step, *ready.state);
    is_awaited = true;
  };
  for (make(); !made.empty();) {
    at_hand.swap(made);
    made.clear();
    std::swap(free, in_use);
    is_awaited = false;
    run_both(reverse_those_at_hand, make);
  }
}

}  // namespace palimpsest
