#pragma once

#include <memory>

#include "autodiff/evaluator.h"
#include "autodiff/export.h"
#include "strategy/base/precision.h"
#include "strategy/evaluators/evaluators.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// An evaluator that computes tapes in another precision than they are recorded in. It records each
/// tape again on a tape of its own, with casts where they are needed. `inner` computes that tape;
/// `lazy()` when it is null. `backward`, `evaluate`, plans, budgets and reports refer to that tape.
///
/// Values and gradients have the dtypes they were recorded with: f32 parameters stay f32, are cast
/// where they are read, and get f32 gradients. The recorded tape holds a requested value until the
/// next one is requested. The inner tape holds it as its evaluator does. Throws `ArgumentError`
/// when `half` is not a 16-bit floating dtype, and when `inner` has no engine or a precision of its
/// own.
std::shared_ptr<EngineEvaluator> precise(Precision precision,
                                         std::shared_ptr<Evaluator> inner = nullptr);

}  // namespace palimpsest
