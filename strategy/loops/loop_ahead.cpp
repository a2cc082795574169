#include "strategy/loops/loop_ahead.h"

#include <algorithm>

namespace palimpsest {
namespace {

/// What `schedule` takes less where up to `most` states are made ahead, in the unit of the two
/// durations.
template <class Schedule>
double saved(Schedule schedule, std::uint32_t most, double forward, double backward) {
  using Kind = ChainAction::Kind;
  // What is run before the next step is reversed; the first sweep is another part's.
  std::optional<ChainAction> action = schedule.next();
  while (action && action->kind != Kind::reverse) action = schedule.next();
  const auto make_next = [&] {
    double seconds = 0;
    std::uint32_t at = 0;
    for (action = schedule.next(); action && action->kind != Kind::reverse;
         action = schedule.next()) {
      if (action->kind == Kind::advance) seconds += forward * (action->step - at);
      at = action->step;
    }
    return seconds;
  };
  double sum = 0;
  for (std::uint32_t at_hand = 1; action;) {
    double made_in = 0;
    std::uint32_t made = 0;
    while (action && made < most && (made == 0 || made_in < backward * at_hand)) {
      made_in += make_next();
      ++made;
    }
    sum += std::min(made_in, backward * at_hand);
    at_hand = made;
  }
  return sum;
}

}  // namespace

std::uint32_t states_ahead(const LoopGradient& gradient, const LoopDivision& division,
                           int threads) {
  constexpr double short_time = 1e-5;  // calling a thread takes a microsecond or two
  constexpr double long_time = 5e-5;   // kernels that take longer are divided among threads
  constexpr std::uint32_t part = 8;    // for one state made, one at hand, and what is left pays
  const std::uint32_t ahead = std::min(division.snapshots / part, 64u);
  if (threads == 1 || ahead < 2 || gradient.loop().is_recorded_again()) return 0;
  const StepProgram& backward = *gradient.backward().get(threads, division.share);
  const bool is_short = ahead * backward.seconds() < short_time;
  return is_short || backward.longest_seconds() >= long_time ? 0 : ahead;
}

double seconds_saved_ahead(const LoopGradient& gradient, const LoopDivision& division,
                           int threads) {
  const Loop& loop = gradient.loop();
  const double forward = loop.advance().get(threads, division.share)->seconds();
  const double backward = gradient.backward().get(threads, division.share)->seconds();
  const LoopLayout layout(snapshot_bytes(division.snapshots, loop), loop);
  const std::uint32_t steps = loop.likely_steps();
  if (layout.disk && !loop.has_condition()) {
    return saved(loop.disk()->schedule(steps, layout.snapshots + 1), division.ahead, forward,
                 backward);
  }
  return saved(BinomialSchedule(steps, layout.snapshots + 1), division.ahead, forward, backward);
}

}  // namespace palimpsest
