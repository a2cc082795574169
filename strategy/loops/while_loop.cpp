#include "strategy/loops/while_loop.h"

#include "strategy/loops/record_scan.h"

namespace palimpsest {

WhileResult while_loop(std::span<const Var> state, const LoopCondition& condition,
                       const LoopBody& body, const LoopOptions& options, Where where) {
  Tape& tape = common_tape(state, "while_loop", where);
  const RandomStream stream = tape.fresh_stream();
  const std::uint64_t seed = seed_of({stream.seed, 0, stream.node});
  const auto step = [body](std::span<const Var> xs, std::span<const Var> inputs,
                           const StepNumber& n) { return LoopStep{body(xs, inputs, n).state}; };
  const auto goes_on = [condition](std::span<const Var> xs, std::span<const Var>,
                                   const StepNumber& n) {
    return LoopStep{{xs.begin(), xs.end()}, {condition(xs, n)}};
  };
  LoopResult made = record_scan(tape, state, 0, {},
                                {step,
                                 goes_on,
                                 &tape,
                                 seed,
                                 where,
                                 nullptr,
                                 {},
                                 inner_of(tape.evaluator()),
                                 stream.generation},
                                options);
  return {std::move(made.state), made.outputs[0]};
}

}  // namespace palimpsest
