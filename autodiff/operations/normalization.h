#pragma once

#include "autodiff/var.h"

namespace palimpsest {

// Every normalisation is one operation that keeps its input x only: the statistics are computed
// again in the adjoint, which is one operation too. `weight` and `bias` may be empty Vars; a bias
// without a weight is an `ArgumentError`. Throws `ShapeError` when the shapes do not fit,
// `DTypeError` unless all are floating and computed in one precision: f32 weights go with 16 bits.

/// (x − mean)/√(variance + epsilon)·weight + bias over the last axes, those of `weight`'s shape, or
/// over the last one without a weight (Ba, Kiros and Hinton, 2016).
Var layer_norm(const Var& x, const Var& weight = {}, const Var& bias = {}, double epsilon = 1e-5,
               Where where = Where::current());

/// x/√(mean of x² + epsilon)·weight over the same axes as `layer_norm` (Zhang and Sennrich, 2019).
Var rms_norm(const Var& x, const Var& weight = {}, double epsilon = 1e-6,
             Where where = Where::current());

/// x (N, C, …) with statistics for each of N and each group of C/groups adjacent channels; weight
/// and bias (C) (Wu and He, 2018). Throws `ArgumentError` unless `groups` divides C.
Var group_norm(const Var& x, std::int64_t groups, const Var& weight = {}, const Var& bias = {},
               double epsilon = 1e-5, Where where = Where::current());

/// `group_norm` with a group for each channel (Ulyanov, Vedaldi and Lempitsky, 2016).
Var instance_norm(const Var& x, const Var& weight = {}, const Var& bias = {}, double epsilon = 1e-5,
                  Where where = Where::current());

/// y, and the statistics of the batch, (C) each; `variance` is the mean square deviation.
struct BatchNorm {
  Var y;
  Var mean;
  Var variance;
};

/// x (N, C, …) with statistics for each channel over everything else (Ioffe and Szegedy, 2015). To
/// keep running averages, read `mean` and `variance` after the step: nothing is changed here, so
/// computing it again is safe. Derivatives flow through all three results.
BatchNorm batch_norm(const Var& x, const Var& weight = {}, const Var& bias = {},
                     double epsilon = 1e-5, Where where = Where::current());

/// The same with statistics that are given, (C) each, as in inference.
Var batch_norm(const Var& x, const Var& mean, const Var& variance, const Var& weight,
               const Var& bias, double epsilon = 1e-5, Where where = Where::current());

}  // namespace palimpsest
