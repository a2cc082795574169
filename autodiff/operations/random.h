#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

/// Random values. Each node has its own random stream, keyed when it is recorded by the tape's
/// seed, the number of times the tape was cleared, and the node. Recomputing it, in another order
/// or on other threads, gives the same bits. No derivative flows through the numbers themselves.
/// `uniform` and `normal` throw `DTypeError` for dtypes that are not floating.
namespace palimpsest PALIMPSEST_EXPORT {

/// Uniform on [low, high). 16-bit dtypes are rounded, but never to `high`. Throws `ArgumentError`
/// unless low < high and both and their difference are finite.
Var uniform(Tape& tape, const Shape& shape, double low = 0, double high = 1,
            DType dtype = DType::f32, Where where = Where::current());

/// Normal with the given mean and standard deviation. Throws `ArgumentError` for a negative
/// deviation.
Var normal(Tape& tape, const Shape& shape, double mean = 0, double deviation = 1,
           DType dtype = DType::f32, Where where = Where::current());

/// 1 with probability p, else 0. Any dtype. Throws `ArgumentError` unless 0 ≤ p ≤ 1.
Var bernoulli(Tape& tape, const Shape& shape, double p, DType dtype = DType::f32,
              Where where = Where::current());

/// Each element is 0 with probability p, otherwise x/(1 − p) (Srivastava et al., 2014). Returns x
/// when not `training` or when p is 0. The mask is never stored: the adjoint regenerates it. The
/// mask does not depend on the dtype. Throws `ArgumentError` unless 0 ≤ p ≤ 1.
Var dropout(const Var& x, double p, bool training = true, Where where = Where::current());
/// `dropout` with the random numbers of the given stream.
Var dropout(const Var& x, double p, const RandomStream& stream, Where where = Where::current());

}  // namespace palimpsest
