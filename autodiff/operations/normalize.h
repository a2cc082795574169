#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// The common form of all normalizations. x is viewed as (batch, groups, channels, spatial).
/// Statistics are over the last two axes, or over all axes except groups. Weight and bias are
/// (groups, channels). Layer norm has one group and no spatial axis; batch norm has groups of one
/// channel.
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

/// (x[, weight[, bias]]) → y; with statistics over the batch also mean and variance.
void compute_normalization(const KernelCall& call);
Bytes normalization_workspace(const NodeView& node, int threads);

/// (dy, x[, weight[, bias]]) → dx[, dweight[, dbias]]
void compute_normalization_adjoint(const KernelCall& call);
Bytes normalization_adjoint_workspace(const NodeView& node, int threads);

}  // namespace palimpsest
