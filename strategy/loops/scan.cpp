#include "strategy/loops/scan.h"

#include "strategy/loops/record_scan.h"

namespace palimpsest {

LoopResult scan(std::span<const Var> state, std::int64_t steps, std::span<const Var> inputs,
                const LoopBody& body, const LoopOptions& options, Where where) {
  Tape& tape = common_tape(state, "scan", where);
  const RandomStream stream = tape.fresh_stream();
  const std::uint64_t seed = seed_of({stream.seed, 0, stream.node});
  return record_scan(tape, state, steps, inputs,
                     {body,
                      nullptr,
                      &tape,
                      seed,
                      where,
                      nullptr,
                      {},
                      inner_of(tape.evaluator()),
                      stream.generation},
                     options);
}

}  // namespace palimpsest
