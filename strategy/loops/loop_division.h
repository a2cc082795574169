#pragma once

#include <optional>
#include <span>
#include <vector>

#include "strategy/loops/loop_journal.h"
#include "strategy/loops/loop_layout.h"

namespace palimpsest {

/// How the memory of a loop is divided between states, values that steps keep, and the work of a
/// step.
struct LoopDivision {
  std::uint32_t snapshots = 0;   ///< states held, in addition to the first
  Bytes share = unlimited;       ///< the budget for planning a step
  std::uint32_t ahead = 0;       ///< most states made while other steps are reversed
  std::uint32_t kept = 0;        ///< last steps that keep values; if any, all states are held too
  std::uint64_t values = 0;      ///< the key of these `KeptValues`
  Bytes run_budget = unlimited;  ///< of the run, for a loop with a journal
  bool operator==(const LoopDivision&) const = default;
};

/// A loop, and the backward parts that a run computes. There are none in a run that does not
/// differentiate it.
struct LoopParts {
  const Loop& loop;
  std::span<const LoopGradient* const> gradients;

  bool are_differentiated() const { return !gradients.empty(); }
  /// The components of the state that the backward parts need; all if there are none.
  const HeldComponents& held() const;
};

/// Bytes of the held states and of the kept values.
Bytes held_bytes(const HeldComponents& held, const LoopDivision& division);
/// The number of steps whose `values` fit in so many bytes with all states.
std::uint32_t kept_in(Bytes bytes, const HeldComponents& held, const KeptValues& values);
/// Bytes that the forward part or a backward part takes in addition to these.
Bytes forward_memory(const HeldComponents& held, int threads, const LoopDivision& division);
Bytes backward_memory(const LoopGradient& gradient, const HeldComponents& held, int threads,
                      const LoopDivision& division);
/// The larger of these over all parts.
Bytes bytes_beside_states(const LoopParts& parts, const LoopDivision& division, int threads);

/// The smallest budget in which the steps of all parts can be planned, and the largest that any of
/// them can use.
Bytes smallest_share(const LoopParts& parts, int threads);
Bytes largest_share(const LoopParts& parts, int threads);

/// With fewer states it may be faster to recompute parts of steps, which leaves room for more
/// states.
inline constexpr std::uint32_t few_states = 16;
/// Step budgets to try in that case, in decreasing order.
std::vector<Bytes> shares_between(Bytes smallest, Bytes largest);

/// How a loop divides a budget of its own. Steps keep everything they make, and the remaining
/// memory holds states. If that gives only few states, steps planned in smaller budgets are tried
/// too, and the fastest division wins. No states are made ahead. Without a budget all states are
/// held. A loop that is not differentiated holds none. Throws `BudgetError` when the budget is too
/// small for the smallest step budget and, if there are any, for one state.
LoopDivision own_division(const LoopParts& parts, int threads);

/// The division of a loop that no budget limits. If it is differentiated, it holds all states. It
/// keeps up to 1 GiB of `values` of the last steps, unless that is null.
LoopDivision whole_division(const LoopParts& parts, const KeptValues* values);

/// As `own_division`, but if it holds all states, the rest of the budget keeps `values` of the last
/// steps, unless that is null. Without a budget, `whole_division`.
LoopDivision own_division(const LoopParts& parts, int threads, const KeptValues* values);

/// How far an earlier process came, for each of these parts with a journal that can be continued.
std::vector<const LoopPosition*> positions_in_journals(const LoopParts& parts);
/// How a killed process divided the memory of a loop, if one of these parts has a journal that can
/// be continued within the same budgets. The schedule depends on the number of states.
std::optional<LoopDivision> division_of_journal(const LoopParts& parts, Bytes run_budget,
                                                int threads);
/// Likewise, or else `own_division`.
LoopDivision divided(const LoopParts& parts, Bytes run_budget, int threads);

}  // namespace palimpsest
