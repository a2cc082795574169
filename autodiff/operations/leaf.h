#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The operations of leaves. `Tape::parameter` and `Tape::constant` record them.
extern const Operation parameter_operation;
extern const Operation constant_operation;

/// The operations of `full`, `identity` and `cast`. Common subexpression elimination does not see
/// through an identity: expressions of it are not merged with equal expressions of its input.
extern const Operation full_operation;
extern const Operation identity_operation;
extern const Operation cast_operation;
/// The operation of `arange` and `linspace`.
extern const Operation linspace_operation;
/// The attributes of a `full_operation` node for this number.
Attributes full_attributes(double value);

/// A tensor filled with one number, converted as by `convert_element`. Fused kernels compute it
/// where they use it.
Var full(Tape& tape, const Shape& shape, double value, DType dtype = DType::f32,
         Where where = Where::current());

/// `full` with the type of `x`.
Var full_like(const Var& x, double value, Where where = Where::current());

/// x, through which no derivative flows. A view.
Var stop_gradient(const Var& x, Where where = Where::current());

/// x as a separate value. A view.
Var identity(const Var& x, Where where = Where::current());

/// x with its elements converted to `dtype`; the adjoint is converted back. No derivative flows
/// through a conversion to an integer type or bool.
Var cast(const Var& x, DType dtype, Where where = Where::current());

}  // namespace palimpsest
