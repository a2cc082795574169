#include "strategy/loops/scan.h"

#include "autodiff/require_function.h"
#include "strategy/loops/record_scan.h"

namespace palimpsest {

LoopResult scan(std::span<const Var> state, std::int64_t steps, std::span<const Var> inputs,
                const LoopBody& body, const LoopOptions& options, Where where) {
  detail::require_function(body, "scan", "the body", "records a step", where);
  Tape& tape = common_tape(state, "scan", where);
  return record_scan(tape, state, steps, inputs, step_body(tape, body, nullptr, where), options);
}

}  // namespace palimpsest
