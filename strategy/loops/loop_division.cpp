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

Bytes fixed_backward(const LoopGradient& gradient, const HeldComponents& held, int threads,
                     const LoopDivision& division) {
  const AdjointsInPlace in_place(gradient, threads, division);
  const Bytes adjoints = gradient.adjoints().bytes + made_in_turns(gradient, in_place).bytes;
  if (division.kept > 0) return adjoints;
  return 2 * (Bytes{division.ahead} + 1) * held.block().bytes + held.decoded_bytes() + adjoints;
}

Bytes kept_memory(const StepPrograms& programs, int threads) {
  return aligned(programs.get(threads)->workspace());
}

}  // namespace

const HeldComponents& LoopParts::held() const {
  if (!are_differentiated()) return loop.held();  // there are no held states
  std::vector<bool> components(loop.state_count());
  for (const LoopGradient* gradient : gradients) {
    for (std::size_t i = 0; i < components.size(); ++i) {
      if (gradient->held()[i]) components[i] = true;
    }
  }
  return loop.held(components);
}

Bytes held_bytes(const HeldComponents& held, const LoopDivision& division) {
  const Loop& loop = held.loop();
  if (division.kept == 0) return snapshot_bytes(division.snapshots, held);
  return bytes_in_row(loop.steps(), held.block()) +
         bytes_in_row(division.kept, loop.kept(division.values).block);
}

std::uint32_t kept_in(Bytes bytes, const HeldComponents& held, const KeptValues& values) {
  const std::uint32_t steps = held.loop().steps();
  const Bytes rest = bytes - bytes_in_row(steps, held.block());
  const Bytes fitting = rest / buffer_alignment * buffer_alignment / values.block.stride;
  return static_cast<std::uint32_t>(std::clamp(fitting, Bytes{0}, Bytes{steps}));
}

Bytes forward_memory(const HeldComponents& held, int threads, const LoopDivision& division) {
  const Loop& loop = held.loop();
  Bytes step = step_memory(held, nullptr, threads, division.share, false);
  if (division.kept > 0) {
    step = std::max(step, kept_memory(loop.kept(division.values).forward, threads));
    if (held.are_all()) return step;  // states are made where they are held
  }
  return 2 * loop.state().bytes + step;
}

Bytes backward_memory(const LoopGradient& gradient, const HeldComponents& held, int threads,
                      const LoopDivision& division) {
  Bytes step = step_memory(held, &gradient, threads, division.share, division.ahead > 0);
  if (division.kept > 0) {
    const KeptValues& kept = gradient.loop().kept(division.values);
    step = std::max(step, kept_memory(gradient.backward(kept), threads));
  }
  return fixed_backward(gradient, held, threads, division) + step;
}

Bytes bytes_beside_states(const LoopParts& parts, const LoopDivision& division, int threads) {
  const HeldComponents& held = parts.held();
  Bytes bytes = forward_memory(held, threads, division);
  for (const LoopGradient* gradient : parts.gradients) {
    bytes = std::max(bytes, backward_memory(*gradient, held, threads, division));
  }
  return bytes;
}

Bytes smallest_share(const LoopParts& parts, int threads) {
  const HeldComponents& held = parts.held();
  Bytes share = smallest_share(held, nullptr, threads);
  for (const LoopGradient* gradient : parts.gradients) {
    share = std::max(share, smallest_share(held, gradient, threads));
  }
  return share;
}

Bytes largest_share(const LoopParts& parts, int threads) {
  const HeldComponents& held = parts.held();
  Bytes share = step_memory(held, nullptr, threads, unlimited, false);
  for (const LoopGradient* gradient : parts.gradients) {
    share = std::max(share, step_memory(held, gradient, threads, unlimited, false));
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

/// Seconds of a loop and of its first backward part.
double seconds_of(const LoopParts& parts, const LoopDivision& division) {
  const Loop& loop = parts.loop;
  const auto seconds = [&](const StepPrograms& programs) {
    return palimpsest::seconds_of(programs.cost(division.share));
  };
  if (!parts.are_differentiated()) return loop.likely_steps() * seconds(loop.forward());
  const HeldComponents& held = parts.held();
  const LoopWork work = work_of(held, snapshot_bytes(division.snapshots, held));
  return work.steps() * palimpsest::seconds_of(held.cost(division.share)) +
         loop.likely_steps() * seconds(parts.gradients[0]->backward());
}

std::uint32_t most_states(const LoopParts& parts) {
  return parts.are_differentiated() ? parts.loop.snapshots() : 0;
}

Bytes least_states(const LoopParts& parts) {
  return parts.are_differentiated() ? snapshot_bytes(0, parts.held()) : 0;
}

}  // namespace

LoopDivision own_division(const LoopParts& parts, int threads) {
  const Loop& loop = parts.loop;
  const Bytes budget = loop.options().memory_budget;
  if (budget == unlimited) return {most_states(parts)};
  const auto beside_states = [&](Bytes share) {
    return bytes_beside_states(parts, {.share = share}, threads);
  };
  std::optional<LoopDivision> best;
  const auto attempt = [&](Bytes share) {
    const Bytes room = budget - beside_states(share);
    if (room < least_states(parts)) return;
    const std::uint32_t states = parts.are_differentiated() ? snapshots_in(room, parts.held()) : 0;
    const LoopDivision division{states, share};
    if (best && seconds_of(parts, *best) <= seconds_of(parts, division)) return;
    best = division;
  };
  attempt(unlimited);
  if (best && best->snapshots >= std::min(few_states, most_states(parts))) return *best;
  const Bytes smallest = smallest_share(parts, threads);
  std::vector<Bytes> shares = shares_between(smallest, largest_share(parts, threads));
  std::ranges::for_each(shares, attempt);
  if (best) return *best;
  // Where a step recomputes less, it may make more adjoints in place.
  shares.push_back(unlimited);
  std::ranges::transform(shares, shares.begin(), beside_states);
  const Bytes least = std::ranges::min(shares) + least_states(parts);
  throw BudgetError("[" + std::string(loop.body().name()) + "] a loop's own memory budget of " +
                        std::to_string(budget) + " bytes is too small; its steps" +
                        (parts.are_differentiated() ? " and one held state" : "") + " need " +
                        std::to_string(least) +
                        " bytes, so raise LoopOptions::memory_budget (recorded at " +
                        to_string(loop.body().where) + ")",
                    budget, least);
}

LoopDivision whole_division(const LoopParts& parts, const KeptValues* values) {
  constexpr Bytes most_values = 1_GiB;
  const Loop& loop = parts.loop;
  LoopDivision whole{.snapshots = most_states(parts)};
  if (values == nullptr) return whole;
  const HeldComponents& held = parts.held();
  whole.kept = kept_in(most_values + bytes_in_row(loop.steps(), held.block()), held, *values);
  if (whole.kept > 0) whole.values = values->key;
  return whole;
}

LoopDivision own_division(const LoopParts& parts, int threads, const KeptValues* values) {
  const Loop& loop = parts.loop;
  const Bytes budget = loop.options().memory_budget;
  if (budget == unlimited) return whole_division(parts, values);
  const LoopDivision division = own_division(parts, threads);
  const bool has_all = division.share == unlimited && division.snapshots >= loop.snapshots();
  if (values == nullptr || !has_all) return division;
  LoopDivision keeping = division;
  keeping.values = values->key;
  keeping.kept = 1;
  const Bytes room = budget - bytes_beside_states(parts, keeping, threads);
  keeping.kept = kept_in(room, parts.held(), *values);
  if (keeping.kept == 0) return division;
  return keeping;
}

std::vector<const LoopPosition*> positions_in_journals(const LoopParts& parts) {
  const LoopResume* const resume = parts.loop.resume();
  if (resume == nullptr || !parts.are_differentiated()) return {};
  std::vector<std::string> names{LoopResume::with_states};
  for (const LoopGradient* gradient : parts.gradients) {
    names.push_back(LoopResume::gradient(gradient->number()));
  }
  std::vector<const LoopPosition*> positions;
  for (const std::string& name : names) {
    if (const LoopPosition* const found = resume->found(name)) positions.push_back(found);
  }
  return positions;
}

std::optional<LoopDivision> division_of_journal(const LoopParts& parts, Bytes run_budget,
                                                int threads) {
  const HeldComponents& held = parts.held();
  for (const LoopPosition* const found : positions_in_journals(parts)) {
    if (found->run_budget != run_budget) continue;
    if (found->room < snapshot_bytes(0, held)) continue;
    const LoopDivision division{.snapshots = snapshots_in(found->room, held),
                                .share = found->share};
    if (snapshot_bytes(division.snapshots, held) != found->room) continue;
    const Bytes budget = parts.loop.options().memory_budget;
    const bool fits = budget == unlimited ||
                      found->room <= budget - bytes_beside_states(parts, division, threads);
    if (fits) return division;
  }
  return {};
}

LoopDivision divided(const LoopParts& parts, Bytes run_budget, int threads) {
  const auto known = division_of_journal(parts, run_budget, threads);
  return known ? *known : own_division(parts, threads);
}

}  // namespace palimpsest
