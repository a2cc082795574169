#include "strategy/loops/loop_ahead.h"

#include <algorithm>

namespace palimpsest {
namespace {

/// Seconds of a chain's reversal, when a step takes `forward` and `backward` seconds and up to
/// `ahead` states are made while others are reversed. For a long chain the result is extrapolated
/// from its last steps.
template <class Schedule>
double reversal(Schedule schedule, std::uint32_t steps, std::uint32_t ahead, double forward,
                double backward) {
  using Kind = ChainAction::Kind;
  constexpr std::uint32_t most_steps = 1 << 16;
  constexpr double calling = 2e-6;  // waking another thread
  std::optional<ChainAction> action = schedule.next();
  // The first sweep belongs to the forward part.
  while (action && action->kind != Kind::reverse) action = schedule.next();
  // Goes on to the next reversal, if there is one. Returns the seconds of the steps in between.
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
  double seconds = 0;
  std::uint32_t reversed = 0;
  if (ahead == 0) {
    for (; action && reversed < most_steps; ++reversed) seconds += backward + make_next();
    return reversed == 0 ? 0 : seconds / reversed * steps;
  }
  std::uint32_t made = 0;
  for (std::uint32_t at_hand = 1; at_hand > 0 && reversed < most_steps; at_hand = made) {
    const double reversing = backward * at_hand;
    double making = 0;
    for (made = 0; made < ahead && (made == 0 || making < reversing); ++made) {
      making += make_next();
      if (!action) break;
    }
    seconds += std::max(making, reversing) + calling;
    reversed += at_hand;
  }
  return seconds / reversed * steps;
}

}  // namespace

std::uint32_t states_ahead(std::span<const LoopGradient* const> gradients,
                           const LoopDivision& division, int threads) {
  constexpr double long_time = 5e-5;  // longer kernels are divided among threads
  constexpr double serial_share = 0.75;
  constexpr std::uint32_t part = 8;  // most states ahead, as a fraction of all; twice that many
                                     // blocks replace snapshots
  constexpr std::uint32_t most = 64;
  const Loop& loop = gradients[0]->loop();
  const bool all = !loop.has_condition() && division.snapshots >= loop.snapshots();
  const std::uint32_t ahead = std::min(division.snapshots / part, most);
  if (loop.resume() != nullptr) return 0;  // its records need one current state
  const Bytes state = LoopParts{loop, gradients}.held().block().bytes;
  if (all || ahead < 2 || loop.is_recorded_again() || state == 0) return 0;
  const auto leaves_threads_idle = [&](const LoopGradient* gradient) {
    const BufferProgram& step = *gradient->backward().get(threads, division.share);
    return step.longest_seconds() < long_time &&
           step.serial_seconds() >= serial_share * step.seconds();
  };
  return std::ranges::all_of(gradients, leaves_threads_idle) ? ahead : 0;
}

double reversal_seconds(std::span<const LoopGradient* const> gradients,
                        const LoopDivision& division, int threads) {
  const Loop& loop = gradients[0]->loop();
  const HeldComponents& held = LoopParts{loop, gradients}.held();
  const double forward = held.seconds(threads, division.share);
  const LoopLayout layout(snapshot_bytes(division.snapshots, held), held);
  const std::uint32_t steps = loop.likely_steps();
  double sum = 0;
  for (const LoopGradient* gradient : gradients) {
    const double backward = gradient->backward().get(threads, division.share)->seconds();
    const auto add = [&](auto schedule) {
      sum += reversal(std::move(schedule), steps, division.ahead, forward, backward);
    };
    if (layout.disk && !loop.has_condition()) {
      add(held.disk()->schedule(steps, layout.snapshots + 1));
    } else {
      add(BinomialSchedule(steps, layout.snapshots + 1));
    }
  }
  return sum;
}

LoopDivision divided_for_ahead(std::span<const LoopGradient* const> gradients,
                               const LoopDivision& division, int threads) {
  const Loop& loop = gradients[0]->loop();
  LoopDivision other = division;
  other.ahead = states_ahead(gradients, division, threads);
  if (other.ahead == 0) return division;
  const LoopParts parts{loop, gradients};
  const Bytes room = loop.options().memory_budget - bytes_beside_states(parts, other, threads);
  if (room < snapshot_bytes(0, parts.held())) return division;
  other.snapshots = std::min(snapshots_in(room, parts.held()), division.snapshots);
  const bool pays =
      reversal_seconds(gradients, other, threads) < reversal_seconds(gradients, division, threads);
  return pays ? other : division;
}

}  // namespace palimpsest
