#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

/// Random values. Each node has its own random stream, keyed when it is recorded by the tape's
/// seed, the number of times the tape was cleared, and the node. Recomputing it, in another order
/// or on other threads, gives the same bits. Derivatives flow to parameters that are given as
/// `Var`s where that is stated (the reparametrization trick); none flow through the random streams.
///
/// Functions that take a dtype and make real numbers throw `DTypeError` for dtypes that are not
/// floating. 16-bit numbers are computed in f32 and rounded. Functions of `Var`s make numbers of
/// their shape, or of their common shape if they broadcast.
namespace palimpsest PALIMPSEST_EXPORT {

/// Seeds a function of tensors that draws random numbers, such as `poisson(RandomSeed{7}, rates)`.
/// Equal seeds give equal numbers, so give each call another one.
struct RandomSeed {
  std::uint64_t number = 0;
};

/// Uniform on [low, high). 16-bit dtypes are rounded, but never to `high`. Throws `ArgumentError`
/// unless low < high and both and their difference are finite.
Var uniform(Tape& tape, const Shape& shape, double low = 0, double high = 1,
            DType dtype = DType::f32, Where where = Where::current());

/// Normal with the given mean and standard deviation. Throws `ArgumentError` for a negative
/// deviation.
Var normal(Tape& tape, const Shape& shape, double mean = 0, double deviation = 1,
           DType dtype = DType::f32, Where where = Where::current());

/// Normal with a mean and a standard deviation for each element, and derivatives with respect to
/// both.
Var normal(const Var& mean, const Var& deviation, Where where = Where::current());

/// Normal numbers conditioned on lying in [low, high], whose ends may be infinite. Drawn by
/// inversion of the distribution function, also far out in its tails. Throws `ArgumentError` unless
/// low < high and the deviation is positive.
Var truncated_normal(Tape& tape, const Shape& shape, double mean = 0, double deviation = 1,
                     double low = -2, double high = 2, DType dtype = DType::f32,
                     Where where = Where::current());
/// With derivatives with respect to mean and deviation, while low and high stay fixed. The mean,
/// limited to [low, high], where the deviation is 0; NaN where it is negative.
Var truncated_normal(const Var& mean, const Var& deviation, double low, double high,
                     Where where = Where::current());

/// 1 with probability p, else 0. Any dtype. Throws `ArgumentError` unless 0 ≤ p ≤ 1.
Var bernoulli(Tape& tape, const Shape& shape, double p, DType dtype = DType::f32,
              Where where = Where::current());

/// 1 with the probability that each element of p gives, else 0. No derivative.
Var bernoulli(const Var& p, DType dtype = DType::f32, Where where = Where::current());

/// Integers uniform on [low, high). Throws `ArgumentError` unless low < high, and for more than 2⁵³
/// integers.
Var randint(Tape& tape, std::int64_t low, std::int64_t high, const Shape& shape,
            DType dtype = DType::i64, Where where = Where::current());

// Functions of uniform numbers. They throw `ArgumentError` unless the rate or scale is positive.
// For derivatives with respect to a location and a scale, multiply and shift standard numbers.

/// The density is rate·exp(−rate·x) for x ≥ 0.
Var exponential(Tape& tape, const Shape& shape, double rate = 1, DType dtype = DType::f32,
                Where where = Where::current());
/// The density is exp(−|x − location|/scale)/(2·scale).
Var laplace(Tape& tape, const Shape& shape, double location = 0, double scale = 1,
            DType dtype = DType::f32, Where where = Where::current());
/// The distribution function is exp(−exp(−(x − location)/scale)).
Var gumbel(Tape& tape, const Shape& shape, double location = 0, double scale = 1,
           DType dtype = DType::f32, Where where = Where::current());
/// The density is 1/(π·scale·(1 + z²)) with z = (x − location)/scale.
Var cauchy(Tape& tape, const Shape& shape, double location = 0, double scale = 1,
           DType dtype = DType::f32, Where where = Where::current());

// Gamma variates and functions of them. They are drawn by inversion of the distribution function,
// one f64 uniform number for each, so that they are smooth functions of the concentrations. Their
// derivatives are those of implicit reparametrization (Figurnov et al., 2018), up to order 12. From
// concentrations of 10⁵ on, the distribution is approximated (Wilson and Hilferty, 1931). A
// concentration that is not positive throws `ArgumentError` when computed.

/// Gamma variates of scale 1, with derivatives with respect to the concentration a. The density is
/// xᵃ⁻¹·exp(−x)/Γ(a).
Var gamma(const Var& concentration, Where where = Where::current());
/// Gamma variates with numbers as parameters; the mean is concentration·scale.
Var gamma(Tape& tape, const Shape& shape, double concentration, double scale = 1,
          DType dtype = DType::f32, Where where = Where::current());
/// The logarithm of a gamma variate. Small concentrations need it: they give variates that
/// underflow.
Var log_gamma_variate(const Var& concentration, Where where = Where::current());
/// Beta variates, with derivatives with respect to a and b. The density is proportional to
/// xᵃ⁻¹·(1 − x)ᵇ⁻¹.
Var beta(const Var& a, const Var& b, Where where = Where::current());
/// Points of a simplex along the last axis, with derivatives with respect to the concentrations.
Var dirichlet(const Var& concentration, Where where = Where::current());

/// Poisson numbers of the given rates, in their dtype. No derivative. From rates of 10⁵ on, the
/// distribution is approximated. A rate that is negative or not finite throws `ArgumentError` when
/// computed.
Var poisson(const Var& rate, Where where = Where::current());

/// A position along `axis` for each line of logits, as i64; position i has the probability
/// softmax(logits)ᵢ. No derivative.
Var categorical(const Var& logits, int axis = -1, Where where = Where::current());

/// `count` positions for each row of weights along the last axis, in the order in which they are
/// drawn. Position i has a probability proportional to weight i; the weights need not add up to 1.
/// Without replacement the positions differ. The result is i64 (…, count). No derivative.
///
/// Throws `ShapeError` when there are no weights, and `ArgumentError` when `count` is negative or
/// too large. Throws `ArgumentError` when computed for a weight that is negative or not finite, and
/// for too few positive weights.
Var multinomial(const Var& weights, std::int64_t count, bool replacement = false,
                Where where = Where::current());

/// A random permutation of 0 … n − 1, i64 or i32. Throws `DTypeError` for other dtypes,
/// `ArgumentError` for an n that is negative or that the dtype cannot count.
Var randperm(Tape& tape, std::int64_t n, DType dtype = DType::i64, Where where = Where::current());
/// The slices of x along `axis` in a random order.
Var permutation(const Var& x, int axis = 0, Where where = Where::current());

/// Each element is 0 with probability p, otherwise x/(1 − p) (Srivastava et al., 2014). Returns x
/// when not `training` or when p is 0. The mask is never stored: the adjoint regenerates it. The
/// mask does not depend on the dtype. Throws `ArgumentError` unless 0 ≤ p ≤ 1.
Var dropout(const Var& x, double p, bool training = true, Where where = Where::current());
/// `dropout` with the random numbers of the given stream.
Var dropout(const Var& x, double p, const RandomStream& stream, Where where = Where::current());

}  // namespace palimpsest
