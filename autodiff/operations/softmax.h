#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// exp(x) / Σ exp(x) along `axis`, without overflow. Floating dtypes only.
Var softmax(const Var& x, int axis = -1, Where where = Where::current());

/// log(softmax(x)) along `axis`, more accurate than taking the logarithm afterwards.
Var log_softmax(const Var& x, int axis = -1, Where where = Where::current());

/// The adjoint of `softmax` at its value y: dy ↦ y·(dy − Σ dy·y) along `axis`.
Var softmax_adjoint(const Var& dy, const Var& y, int axis, Where where = Where::current());

}  // namespace palimpsest
