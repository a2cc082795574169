#pragma once

#include <memory>

#include "autodiff/evaluator.h"
#include "strategy/base/precision.h"

namespace palimpsest {

/// An evaluator that computes tapes in another precision than they are recorded in: whatever is
/// recorded is recorded again, with casts where they are needed, on a tape of its own that `inner`
/// computes, `lazy()` when it is null. `backward`, `evaluate` and plans are of that tape, and so
/// are the bytes of budgets and reports.
///
/// Values and gradients have the dtypes they were recorded with: parameters that are f32 stay f32,
/// are cast where they are read, and get f32 gradients. The tape holds a value asked for until the
/// next is; the other tape holds it as its evaluator does. Throws `ArgumentError` when `half` is no
/// 16-bit floating dtype and when `inner` has no engine, or a precision of its own.
std::shared_ptr<Evaluator> precise(Precision precision, std::shared_ptr<Evaluator> inner = nullptr);

}  // namespace palimpsest
