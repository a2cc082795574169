#pragma once

#include "autodiff/gradient.h"
#include "autodiff/operations/unary_functions.h"

namespace palimpsest {

/// Records function number `index` of `functions::Unary`. Floating dtypes only; throws
/// `DTypeError`.
Var record_unary(std::size_t index, const Var& x, const functions::Parameters& parameters,
                 const Where& where);

/// Records the function `F` of x, element by element; `parameters` go to `F::value` and
/// `F::adjoint`.
template <class F>
Var unary(const Var& x, const Where& where, const functions::Parameters& parameters = {}) {
  return record_unary(functions::position<F, functions::Unary>, x, parameters, where);
}

}  // namespace palimpsest
