#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// What all normalisations share: x as (batch, groups, channels, spatial), statistics over the last
/// two axes, or over all but the groups; weight and bias (groups, channels). Layer norm has one
/// group and no spatial axis, batch norm groups of one channel.
struct Normalization {
  std::int64_t batch = 1;
  std::int64_t groups = 1;
  std::int64_t channels = 1;
  std::int64_t spatial = 1;
  bool over_batch = false;
  bool centered = true;  ///< false: no mean is subtracted
  double epsilon = 0;

  Shape shape() const { return {batch, groups, channels, spatial}; }
  /// Elements that share statistics.
  std::int64_t count() const { return (over_batch ? batch : 1) * channels * spatial; }

  bool operator==(const Normalization& other) const {
    return shape() == other.shape() && over_batch == other.over_batch &&
           centered == other.centered && same_number(epsilon, other.epsilon);
  }
};

/// (x[, weight[, bias]]) → y, and for statistics over the batch mean and variance.
void compute_normalization(const KernelCall& call);
Bytes normalization_workspace(const NodeView& node, int threads);

/// (dy, x[, weight[, bias]]) → dx[, dweight[, dbias]]
void compute_normalization_adjoint(const KernelCall& call);
Bytes normalization_adjoint_workspace(const NodeView& node, int threads);

}  // namespace palimpsest
