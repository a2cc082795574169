#include "strategy/loops/division_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "autodiff/execute.h"
#include "checkpoint/engine_planner.h"
#include "strategy/compile/form_choice.h"
#include "strategy/loops/loop_ahead.h"

namespace palimpsest {
namespace {

/// The largest number up to `most` for which `fits` holds. It must hold for 0. A good `guess` saves
/// calls.
std::uint32_t largest_fitting(std::uint32_t most, std::uint32_t guess,
                              const std::function<bool(std::uint32_t)>& fits) {
  std::uint32_t low = 0;
  std::uint32_t high = most + 1;
  const auto look = [&](std::uint32_t at) {
    if (at > low && at < high) (fits(at) ? low : high) = at;
  };
  look(guess);
  look(guess + 1);
  while (low + 1 < high) look(low + (high - low) / 2);
  return low;
}

}  // namespace

bool leaves_threads_idle(std::span<const RecordedLoop> loops, int threads) {
  std::ptrdiff_t parts = 0;
  for (const RecordedLoop& loop : loops) parts += std::ssize(loop.gradients);
  return parts < threads;
}

DivisionSearch::DivisionSearch(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                               DividedLoops& loops)
    : tape_(tape), spec_(spec), options_(options), loops_(loops), ahead_(loops.all.size()) {
  for (const std::size_t i : loops_.flexible) {
    most_ = std::max(most_, loops_.most[i]);
    if (!loops_.all[i].is_differentiated()) continue;
    state_bytes_ += loops_.all[i].parts().held().codec().block().stride;
  }
  state_bytes_ = std::max<Bytes>(state_bytes_, 1);
}

void DivisionSearch::run() {
  const auto affordable =
      static_cast<std::uint32_t>(std::min(options_.memory_budget / state_bytes_, Bytes{most_}));
  if (affordable == most_ && keeps_all({most_})) return keep_values(most_);
  // A loop of one step may take less with the values of its step than when it runs the step again.
  const LoopDivision whole{.snapshots = most_, .kept = most_kept()};
  if (affordable == most_ && whole.kept > 0 && keeps_all(whole)) return set(whole);
  LoopDivision best;
  double least_cost = std::numeric_limits<double>::infinity();
  std::vector<LoopDivision> tried;
  const auto consider = [&](const LoopDivision& choice) {
    if (std::ranges::find(tried, choice) != tried.end()) return;
    tried.push_back(choice);
    const double cost = planned_cost(choice);
    if (cost < least_cost) best = choice;
    least_cost = std::min(least_cost, cost);
  };
  const std::uint32_t most_fitting = fitting(affordable, unlimited);
  consider({most_fitting});
  // More states may be worth recomputing other values.
  for (std::uint32_t count = affordable; count > 0; count /= 4) consider({count});
  consider({0});
  // If states are few, recomputing parts of steps may be worth it too. So it may for loops that
  // hold none, where something else is recomputed.
  if (most_fitting < std::min(most_, few_states) || most_ == 0) {
    for (const Bytes share : shares()) consider({fitting(affordable, share), share});
  }
  // A planner may take more than keep-all does. If nothing fits, the refusal names a budget for
  // what takes the least.
  if (!std::isfinite(least_cost)) {
    const std::vector<Bytes> smaller = shares();
    for (const Bytes share : smaller) consider({0, share});
    if (!std::isfinite(least_cost)) {
      best = {0, least_share(smaller)};
      if (whole.kept == 1 && keep_all_peak(whole) < keep_all_peak(best)) best = whole;
    }
  }
  set(best);
  if (leaves_threads_idle(loops_.all, spec_.threads)) make_states_ahead(best);
}

Bytes DivisionSearch::peak_bound() {
  // A step in less memory recomputes more and may make fewer adjoints in place.
  std::vector<LoopDivision> tight{{0}, {.snapshots = most_, .kept = 1}};
  if (!loops_.flexible.empty()) {
    for (const Bytes share : shares()) tight.push_back({0, share});
  }
  Bytes least = unlimited;
  for (const LoopDivision& division : tight) {
    set(division);
    least = std::min(least, peak_bound_of(tape_, spec_, options_));
  }
  return least;
}

/// The number of states that fit in addition to everything else without recomputation. 0 if even
/// that does not fit.
std::uint32_t DivisionSearch::fitting(std::uint32_t most, Bytes share) {
  const Bytes budget = options_.memory_budget;
  const Bytes least = keep_all_peak({0, share});
  if (least > budget) return 0;
  constexpr Bytes line = buffer_alignment;
  const Bytes room = (budget - least) / line * line;
  const auto guess = static_cast<std::uint32_t>(std::min(room / state_bytes_, Bytes{most}));
  return largest_fitting(
      most, guess, [&](std::uint32_t count) { return keep_all_peak({count, share}) <= budget; });
}

/// True if the planner keeps everything. False does not mean that no plan fits.
bool DivisionSearch::keeps_all(const LoopDivision& division) {
  const PlannerPtr planner = planner_of(options_);
  if (!engine_part(planner).accepts_keep_all()) return false;
  const Bytes peak = keep_all_peak(division);
  return peak <= engine_part(planner).limit(peak, options_.memory_budget);
}

/// The steps of the longest loop that may keep values.
std::uint32_t DivisionSearch::most_kept() const {
  std::uint32_t most = 0;
  for (const std::size_t i : loops_.flexible) {
    if (loops_.values[i] != nullptr) most = std::max(most, loops_.all[i].loop().steps());
  }
  return most;
}

/// Uses memory that is left when all states are held for values of steps.
void DivisionSearch::keep_values(std::uint32_t snapshots) {
  std::uint32_t most = most_kept();
  if (most == 0) return;
  Bytes bytes = 0;  // of a step of each loop
  for (const std::size_t i : loops_.flexible) {
    if (loops_.values[i] != nullptr) bytes += loops_.values[i]->block.stride;
  }
  const Bytes budget = options_.memory_budget;
  most = static_cast<std::uint32_t>(std::min(budget / bytes, Bytes{most}));
  const Bytes rest = budget - keep_all_peak({.snapshots = snapshots, .kept = 1});
  const auto guess =
      static_cast<std::uint32_t>(std::clamp(1 + rest / bytes, Bytes{0}, Bytes{most}));
  const std::uint32_t kept = largest_fitting(most, guess, [&](std::uint32_t count) {
    return keeps_all({.snapshots = snapshots, .kept = count});
  });
  set({.snapshots = snapshots, .kept = kept});
}

/// Gives up some states to compute others ahead of time, if that makes the loops faster. Only for
/// programs in which nothing except loops recomputes.
void DivisionSearch::make_states_ahead(const LoopDivision& division) {
  if (!keeps_all(division)) return;
  const double before = reversal_seconds();
  for (const std::size_t i : loops_.flexible) {
    if (!loops_.all[i].is_differentiated()) continue;
    ahead_[i] = states_ahead(loops_.all[i].gradients, loops_.divisions[i], spec_.threads);
  }
  if (std::ranges::count(ahead_, 0u) == std::ssize(ahead_)) return;
  const std::uint32_t fewer = fitting(division.snapshots, division.share);
  if (keeps_all({fewer, division.share}) && reversal_seconds() < before) return;
  std::ranges::fill(ahead_, 0);
  set(division);
}

double DivisionSearch::reversal_seconds() const {
  double sum = 0;
  for (const std::size_t i : loops_.flexible) {
    if (!loops_.all[i].is_differentiated()) continue;
    sum +=
        palimpsest::reversal_seconds(loops_.all[i].gradients, loops_.divisions[i], spec_.threads);
  }
  return sum;
}

/// The step shares to try; the smallest possible one comes last. They are those of loops that are
/// differentiated, if there are any: others get at least what they need.
std::vector<Bytes> DivisionSearch::shares() const {
  const bool any_differentiated = std::ranges::any_of(
      loops_.flexible, [&](std::size_t i) { return loops_.all[i].is_differentiated(); });
  Bytes low = 0;
  Bytes high = 0;
  for (const std::size_t i : loops_.flexible) {
    if (any_differentiated && !loops_.all[i].is_differentiated()) continue;
    low = std::max(low, smallest_share(loops_.all[i].parts(), spec_.threads));
    high = std::max(high, largest_share(loops_.all[i].parts(), spec_.threads));
  }
  return shares_between(low, high);
}

/// The share with which the loops take least, one of these or no limit. Where a step recomputes
/// less, it may make more adjoints in place.
Bytes DivisionSearch::least_share(std::vector<Bytes> shares) const {
  std::ranges::reverse(shares);
  shares.push_back(unlimited);
  const auto bytes = [&](Bytes share) {
    Bytes most = 0;
    for (const std::size_t i : loops_.flexible) {
      most = std::max(most, bytes_beside_states(loops_.all[i].parts(),
                                                {.share = share_of(i, share)}, spec_.threads));
    }
    return most;
  };
  return *std::ranges::min_element(shares, {}, bytes);
}

/// The share of a loop where `share` is that of the differentiated ones.
Bytes DivisionSearch::share_of(std::size_t loop, Bytes share) const {
  if (share == unlimited || loops_.all[loop].is_differentiated()) return share;
  return std::max(share, aligned(smallest_share(loops_.all[loop].parts(), spec_.threads)));
}

void DivisionSearch::set(const LoopDivision& division) {
  for (const std::size_t i : loops_.flexible) {
    LoopDivision& own = loops_.divisions[i];
    const KeptValues* const values = loops_.values[i];
    own = division;
    own.share = share_of(i, division.share);
    own.snapshots = std::min(division.snapshots, loops_.most[i]);
    own.ahead = ahead_[i];
    own.kept = 0;
    if (division.kept > 0 && values != nullptr) {
      const HeldComponents& held = loops_.all[i].parts().held();
      own.kept = std::min(division.kept, held.loop().steps());
      own.values = values->key;
      // In whole cache lines, a few more values may fit.
      own.kept = kept_in(held_bytes(held, own), held, *values);
    }
    give_state_budget(tape_, loops_.all[i], own);
  }
}

Bytes DivisionSearch::keep_all_peak(const LoopDivision& division) {
  set(division);
  return keep_all_of(tape_, spec_, options_).peak;
}

/// Infinite if nothing fits the budget.
double DivisionSearch::planned_cost(const LoopDivision& division) {
  set(division);
  const std::optional<Planned> planned = look_at_tape(tape_, spec_, options_);
  return planned ? cost(*planned) : std::numeric_limits<double>::infinity();
}

}  // namespace palimpsest
