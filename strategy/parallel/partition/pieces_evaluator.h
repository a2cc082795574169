#pragma once

#include <memory>
#include <string>

#include "autodiff/export.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/evaluators/evaluators.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// The evaluator for tapes whose programs run in pieces: a lazy one in the strategy's precision.
std::shared_ptr<EngineEvaluator> evaluator_for_pieces(const ExecutionStrategy& strategy);

/// Throws `ArgumentError`, naming the mode, if a value of the tape was computed while it was
/// recorded or differentiated. Pieces are cut only after everything is recorded.
void require_nothing_computed(const Tape& tape, const std::string& mode);
/// The same, after which nothing is there.
void require_nothing_left(Tape& tape, const std::string& mode);

}  // namespace palimpsest
