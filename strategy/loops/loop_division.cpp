#include "strategy/loops/loop_division.h"

#include <algorithm>
#include <optional>
#include <string>

#include "autodiff/execute.h"
#include "checkpoint/machine.h"
#include "strategy/loops/kept_values.h"
#include "strategy/loops/loop_adjoints.h"
#include "strategy/loops/loop_steps.h"

namespace palimpsest {
namespace {

Bytes fixed_backward(const LoopGradient& gradient, int threads, const LoopDivision& division) {
  const Loop& loop = gradient.loop();
  const AdjointsInPlace in_place(gradient, threads, division);
  const Bytes adjoints = gradient.adjoints().bytes + made_in_turns(gradient, in_place).bytes;
  if (division.kept > 0) return adjoints;
  return 2 * (Bytes{division.ahead} + 1) * loop.state().bytes + decoded_bytes(loop) + adjoints;
}

Bytes kept_memory(const StepPrograms& programs, int threads) {
  return aligned(programs.get(threads)->workspace());
}

}  // namespace

Bytes decoded_bytes(const Loop& loop) { return loop.codec().is_exact() ? 0 : loop.state().bytes; }

Bytes held_bytes(const Loop& loop, const LoopDivision& division) {
  if (division.kept == 0) return snapshot_bytes(division.snapshots, loop);
  return bytes_in_row(loop.steps(), loop.state()) +
         bytes_in_row(division.kept, loop.kept(division.values).block);
}

std::uint32_t kept_in(Bytes bytes, const Loop& loop, const KeptValues& values) {
  const Bytes rest = bytes - bytes_in_row(loop.steps(), loop.state());
  const Bytes fitting = rest / buffer_alignment * buffer_alignment / values.block.stride;
  return static_cast<std::uint32_t>(std::clamp(fitting, Bytes{0}, Bytes{loop.steps()}));
}

Bytes forward_memory(const Loop& loop, int threads, const LoopDivision& division) {
  const Bytes step = step_memory(loop, nullptr, threads, division.share, false);
  if (division.kept == 0) return 2 * loop.state().bytes + step;
  return std::max(step, kept_memory(loop.kept(division.values).forward, threads));
}

Bytes backward_memory(const LoopGradient& gradient, int threads, const LoopDivision& division) {
  const Loop& loop = gradient.loop();
  Bytes step = step_memory(loop, &gradient, threads, division.share, division.ahead > 0);
  if (division.kept > 0) {
    step = std::max(step, kept_memory(gradient.backward(loop.kept(division.values)), threads));
  }
  return fixed_backward(gradient, threads, division) + step;
}

Bytes bytes_beside_states(std::span<const LoopGradient* const> gradients,
                          const LoopDivision& division, int threads) {
  Bytes bytes = forward_memory(gradients[0]->loop(), threads, division);
  for (const LoopGradient* gradient : gradients) {
    bytes = std::max(bytes, backward_memory(*gradient, threads, division));
  }
  return bytes;
}

Bytes smallest_share(std::span<const LoopGradient* const> gradients, int threads) {
  Bytes share = smallest_share(gradients[0]->loop(), nullptr, threads);
  for (const LoopGradient* gradient : gradients) {
    share = std::max(share, smallest_share(gradient->loop(), gradient, threads));
  }
  return share;
}

Bytes largest_share(std::span<const LoopGradient* const> gradients, int threads) {
  Bytes share = step_memory(gradients[0]->loop(), nullptr, threads, unlimited, false);
  for (const LoopGradient* gradient : gradients) {
    share = std::max(share, step_memory(gradient->loop(), gradient, threads, unlimited, false));
  }
  return share;
}

std::vector<Bytes> shares_between(Bytes smallest, Bytes largest) {
  std::vector<Bytes> shares;
  for (const Bytes quarters : {3, 2, 1, 0}) {
    const Bytes share = aligned(std::max<Bytes>(smallest + (largest - smallest) / 4 * quarters, 1));
    if (shares.empty() || share < shares.back()) shares.push_back(share);
  }
  return shares;
}

namespace {

/// Seconds of a loop's derivative, including its forward part.
double seconds_of(const LoopGradient& gradient, const LoopDivision& division) {
  const Loop& loop = gradient.loop();
  const LoopWork work = work_of(loop, snapshot_bytes(division.snapshots, loop));
  return work.steps() * palimpsest::seconds_of(loop.advance().cost(division.share)) +
         loop.likely_steps() * palimpsest::seconds_of(gradient.backward().cost(division.share));
}

}  // namespace

LoopDivision own_division(std::span<const LoopGradient* const> gradients, int threads) {
  const Loop& loop = gradients[0]->loop();
  const Bytes budget = loop.options().memory_budget;
  if (budget == unlimited) return {loop.snapshots()};
  const auto beside_states = [&](Bytes share) {
    return bytes_beside_states(gradients, {.share = share}, threads);
  };
  std::optional<LoopDivision> best;
  const auto attempt = [&](Bytes share) {
    const Bytes room = budget - beside_states(share);
    if (room < snapshot_bytes(0, loop)) return;
    const LoopDivision division{snapshots_in(room, loop), share};
    if (best && seconds_of(*gradients[0], *best) <= seconds_of(*gradients[0], division)) return;
    best = division;
  };
  attempt(unlimited);
  if (best && best->snapshots >= std::min(few_states, loop.snapshots())) return *best;
  const Bytes smallest = smallest_share(gradients, threads);
  std::vector<Bytes> shares = shares_between(smallest, largest_share(gradients, threads));
  std::ranges::for_each(shares, attempt);
  if (best) return *best;
  // Where a step recomputes less, it may make more adjoints in place.
  shares.push_back(unlimited);
  std::ranges::transform(shares, shares.begin(), beside_states);
  const Bytes least = std::ranges::min(shares) + snapshot_bytes(0, loop);
  throw BudgetError(
      "[" + std::string(loop.body().name()) + "] a loop's own memory budget of " +
          std::to_string(budget) + " bytes is too small; its steps and one held state need " +
          std::to_string(least) + " bytes, so raise LoopOptions::memory_budget (recorded at " +
          to_string(loop.body().where) + ")",
      budget, least);
}

LoopDivision whole_division(const Loop& loop, const KeptValues* values) {
  constexpr Bytes most_values = 1_GiB;
  LoopDivision whole{.snapshots = loop.snapshots()};
  if (values == nullptr) return whole;
  whole.kept = kept_in(most_values + bytes_in_row(loop.steps(), loop.state()), loop, *values);
  if (whole.kept > 0) whole.values = values->key;
  return whole;
}

LoopDivision own_division(std::span<const LoopGradient* const> gradients, int threads,
                          const KeptValues* values) {
  const Loop& loop = gradients[0]->loop();
  const Bytes budget = loop.options().memory_budget;
  if (budget == unlimited) return whole_division(loop, values);
  const LoopDivision division = own_division(gradients, threads);
  const bool has_all = division.share == unlimited && division.snapshots >= loop.snapshots();
  if (values == nullptr || !has_all) return division;
  LoopDivision keeping = division;
  keeping.values = values->key;
  keeping.kept = 1;
  const Bytes room = budget - bytes_beside_states(gradients, keeping, threads);
  keeping.kept = kept_in(room, loop, *values);
  if (keeping.kept == 0) return division;
  return keeping;
}

std::optional<LoopDivision> division_of_journal(std::span<const LoopGradient* const> gradients,
                                                Bytes run_budget, int threads) {
  const Loop& loop = gradients[0]->loop();
  if (loop.resume() == nullptr) return {};
  std::vector<std::string> parts{LoopResume::with_states};
  for (const LoopGradient* gradient : gradients) {
    parts.push_back(LoopResume::gradient(gradient->number()));
  }
  for (const std::string& part : parts) {
    const LoopPosition* const found = loop.resume()->found(part);
    if (found == nullptr || found->run_budget != run_budget) continue;
    if (found->room < snapshot_bytes(0, loop)) continue;
    const LoopDivision division{.snapshots = snapshots_in(found->room, loop),
                                .share = found->share};
    if (snapshot_bytes(division.snapshots, loop) != found->room) continue;
    const Bytes budget = loop.options().memory_budget;
    const bool fits = budget == unlimited ||
                      found->room <= budget - bytes_beside_states(gradients, division, threads);
    if (fits) return division;
  }
  return {};
}

LoopDivision divided(std::span<const LoopGradient* const> gradients, Bytes run_budget,
                     int threads) {
  const auto known = division_of_journal(gradients, run_budget, threads);
  return known ? *known : own_division(gradients, threads);
}

}  // namespace palimpsest
