#pragma once

#include "autodiff/var.h"

namespace palimpsest {

/// x·weight + bias for x (…, I), weight (I, O) and bias (O), which may be empty. Throws as `matmul`
/// and `add` do.
Var linear(const Var& x, const Var& weight, const Var& bias = {}, Where where = Where::current());

}  // namespace palimpsest
