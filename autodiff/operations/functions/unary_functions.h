#pragma once

#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/loss.h"
#include "autodiff/operations/functions/special.h"
#include "autodiff/operations/functions/trigonometric.h"

namespace palimpsest::functions {

/// Every function of one variable, in the order of the documentation.
using Unary =
    decltype(Arithmetic{} + Exponential{} + Trigonometric{} + Special{} + Activation{} + Loss{});

}  // namespace palimpsest::functions
