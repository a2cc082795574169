#include "strategy/loops/while_loop.h"

#include "autodiff/require_function.h"
#include "strategy/loops/record_scan.h"

namespace palimpsest {

WhileResult while_loop(std::span<const Var> state, const LoopCondition& condition,
                       const LoopBody& body, const LoopOptions& options, Where where) {
  detail::require_function(condition, "while_loop", "the condition", "records whether to continue",
                           where);
  detail::require_function(body, "while_loop", "the body", "records a step", where);
  Tape& tape = common_tape(state, "while_loop", where);
  const auto step = [body](std::span<const Var> xs, std::span<const Var> inputs,
                           const StepNumber& n) { return LoopStep{body(xs, inputs, n).state}; };
  const auto goes_on = [condition](std::span<const Var> xs, std::span<const Var>,
                                   const StepNumber& n) {
    return LoopStep{{xs.begin(), xs.end()}, {condition(xs, n)}};
  };
  LoopResult made = record_scan(tape, state, 0, {}, step_body(tape, step, goes_on, where), options);
  return {std::move(made.state), made.outputs[0]};
}

}  // namespace palimpsest
