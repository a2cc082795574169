#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

// Each normalization is one operation that keeps only its input x. The adjoint is one operation too
// and recomputes the statistics. The normalized values have the type of x. `weight` and `bias` may
// be empty `Var`s. Throws `ArgumentError` for a bias without a weight and for a negative epsilon,
// and `ShapeError` when the shapes do not fit. Throws `DTypeError` unless all operands are floating
// with one compute dtype; f32 weights may be combined with a 16-bit x.

/// (x − mean)/√(variance + epsilon)·weight + bias over the last axes, as many as `weight` has.
/// Without a weight it normalizes the last axis (Ba, Kiros and Hinton, 2016).
Var layer_norm(const Var& x, const Var& weight = {}, const Var& bias = {}, double epsilon = 1e-5,
               Where where = Where::current());

/// x/√(mean of x² + epsilon)·weight over the same axes as `layer_norm` (Zhang and Sennrich, 2019).
Var rms_norm(const Var& x, const Var& weight = {}, double epsilon = 1e-6,
             Where where = Where::current());

/// Normalizes x (N, C, …) with statistics per sample and group of C/groups adjacent channels;
/// weight and bias are (C) (Wu and He, 2018). Throws `ArgumentError` unless `groups` divides C.
Var group_norm(const Var& x, std::int64_t groups, const Var& weight = {}, const Var& bias = {},
               double epsilon = 1e-5, Where where = Where::current());

/// `group_norm` with one group per channel (Ulyanov, Vedaldi and Lempitsky, 2016).
Var instance_norm(const Var& x, const Var& weight = {}, const Var& bias = {}, double epsilon = 1e-5,
                  Where where = Where::current());

/// y and the batch statistics, (C) each and in x's compute dtype. `variance` is the mean squared
/// deviation, divided by n.
struct BatchNorm {
  Var y;
  Var mean;
  Var variance;
};

/// Normalizes x (N, C, …) with statistics per channel (Ioffe and Szegedy, 2015). To keep running
/// averages, read `mean` and `variance` after the step. The operation has no side effects, so it
/// can be recomputed. Derivatives flow through all three results.
BatchNorm batch_norm(const Var& x, const Var& weight = {}, const Var& bias = {},
                     double epsilon = 1e-5, Where where = Where::current());

/// Uses the given statistics, (C) each, as in inference.
Var batch_norm(const Var& x, const Var& mean, const Var& variance, const Var& weight,
               const Var& bias, double epsilon = 1e-5, Where where = Where::current());

/// exp(x) / Σ exp(x) along `axis`, without overflow. Throws `DTypeError` for dtypes that are not
/// floating, `ShapeError` for an axis that does not exist.
Var softmax(const Var& x, int axis = -1, Where where = Where::current());

/// log(softmax(x)) along `axis`, more accurate than taking the logarithm afterwards. Throws
/// likewise.
Var log_softmax(const Var& x, int axis = -1, Where where = Where::current());

/// The adjoint of `softmax` at its value y: dy ↦ y·(dy − Σ dy·y) along `axis`.
Var softmax_adjoint(const Var& dy, const Var& y, int axis, Where where = Where::current());

/// magnitude·direction/‖direction‖ (weight normalization, Salimans and Kingma, 2016). Norms are
/// over all axes except `axis`, and magnitude (n) has one number for each position along it. Throws
/// `ShapeError` for a magnitude of another shape, `DTypeError` unless the direction is floating.
Var weight_norm(const Var& direction, const Var& magnitude, int axis = 0,
                Where where = Where::current());

struct SpectralNormOptions {
  int axis = 0;            ///< of the rows of the matrix; the other axes are its columns
  int iterations = 1;      ///< of the power method
  double epsilon = 1e-12;  ///< least norm that vectors are divided by
};
/// The result of `spectral_norm`.
struct SpectralNorm {
  Var weight;  ///< divided by σ
  Var u;       ///< the new left vector, to start from the next time
  Var sigma;   ///< estimate of the largest singular value
};
/// A weight divided by an estimate of its largest singular value (Miyato et al., 2018). Steps of
/// the power method improve u (rows), and σ = u·W·v with v = Wᵀ·u/‖Wᵀ·u‖. Derivatives flow through
/// σ with u and v fixed. Throws `ShapeError` when u does not fit or the weight is empty,
/// `DTypeError` unless the weight is floating, and `ArgumentError` for options out of range.
SpectralNorm spectral_norm(const Var& weight, const Var& u, const SpectralNormOptions& options = {},
                           Where where = Where::current());

}  // namespace palimpsest
