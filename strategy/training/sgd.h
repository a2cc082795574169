#pragma once

#include <memory>
#include <vector>

#include "autodiff/export.h"
#include "strategy/training/parameter_groups.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Optimizer;

/// Stochastic gradient descent: v ← μv + g + λp; p ← p − ηv (Sutskever et al., 2013, without
/// damping). η is the rate, μ the momentum and λ the decay. With `nesterov`, p ← p − η(g + λp + μv)
/// instead. These are PyTorch's formulas.
struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;  ///< needs momentum
  std::vector<ParameterGroup> groups = {};
};

/// Throws `ArgumentError` for a negative rate or weight decay, for a momentum outside [0, 1), and
/// for Nesterov's without momentum.
std::unique_ptr<Optimizer> sgd(SgdOptions options = {});

}  // namespace palimpsest
