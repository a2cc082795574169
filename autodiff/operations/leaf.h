#pragma once

#include "autodiff/var.h"

namespace palimpsest {

/// The operations of leaves; `Tape::parameter` and `Tape::constant` record them.
extern const Operation parameter_operation;
extern const Operation constant_operation;

/// What `full`, `identity` and `cast` record. What is computed from an identity is another value
/// than what is computed from its input, even where both are the same: it is not merged.
extern const Operation full_operation;
extern const Operation identity_operation;
extern const Operation cast_operation;
/// What a node of `full_operation` is given to make this number.
Attributes full_attributes(double value);

/// A value of one number in every place, computed where it is used and so never kept.
Var full(Tape& tape, const Shape& shape, double value, DType dtype = DType::f32,
         Where where = Where::current());

/// `full` with the type of `x`.
Var full_like(const Var& x, double value, Where where = Where::current());

/// x itself, but no derivative flows through. A view.
Var stop_gradient(const Var& x, Where where = Where::current());

/// x itself, as another value. A view.
Var identity(const Var& x, Where where = Where::current());

/// x with its elements converted to `dtype`; the adjoint is converted back. Converting to an
/// integer or bool type stops derivatives.
Var cast(const Var& x, DType dtype, Where where = Where::current());

}  // namespace palimpsest
