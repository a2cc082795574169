#pragma once

#include "autodiff/export.h"
#include "strategy/loops/scan.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Records whether a loop continues from a state: one element of bool.
using LoopCondition = std::function<Var(std::span<const Var> state, const StepNumber& step)>;

/// The first state for which the condition does not hold, and the number of steps run, an i64.
struct WhileResult {
  std::vector<Var> state;
  Var steps;
};

/// Runs `body` as `scan` does, while `condition` holds for the state. It runs no step if the
/// condition does not hold for the first state. The number of steps need not be known. The states
/// to hold for the derivative are chosen online, so that no step is run again more often than
/// necessary (Wang, Moin and Iaccarino, 2009).
///
/// No derivative flows through the condition. Outputs of the body are not kept. Without any budget
/// 1,000 states are held in memory.
///
/// Throws as `scan`, and `ShapeError` or `DTypeError` for a condition of another type. A run throws
/// `ArgumentError` once there are more than `LoopOptions::max_steps` steps.
WhileResult while_loop(std::span<const Var> state, const LoopCondition& condition,
                       const LoopBody& body, const LoopOptions& options = {},
                       Where where = Where::current());

/// Likewise, for a state of one `Var`; returns the last state.
template <class Condition, class F>
  requires std::is_invocable_r_v<Var, Condition&, const Var&> &&
           std::is_invocable_r_v<Var, F&, const Var&, const StepNumber&>
Var while_loop(const Var& state, Condition condition, F body, const LoopOptions& options = {},
               Where where = Where::current()) {
  detail::require_function(condition, "while_loop", "the condition", "records whether to continue",
                           where);
  detail::require_function(body, "while_loop", "the body", "records a step", where);
  const auto goes_on = [condition = std::move(condition)](std::span<const Var> xs,
                                                          const StepNumber&) mutable {
    return condition(xs[0]);
  };
  const auto step = [body = std::move(body)](std::span<const Var> xs, std::span<const Var>,
                                             const StepNumber& n) mutable {
    return LoopStep{{body(xs[0], n)}};
  };
  return while_loop({&state, 1}, LoopCondition(goes_on), LoopBody(step), options, where).state[0];
}

}  // namespace palimpsest
