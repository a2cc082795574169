#pragma once

#include <memory>
#include <vector>

#include "autodiff/export.h"
#include "strategy/training/parameter_groups.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Optimizer;

/// Lion (Chen et al., 2023): p ← p − η(sign(β₁m + (1−β₁)g) + λp); m ← β₂m + (1−β₂)g. It keeps half
/// the state of Adam. Every element moves by the rate, so rates are three to ten times smaller than
/// for AdamW, and decays as many times larger. The sign of 0 is 0, that of NaN is NaN.
struct LionOptions {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
  std::vector<ParameterGroup> groups = {};
};

/// Throws `ArgumentError` for a negative rate or weight decay, and for a beta outside [0, 1).
std::unique_ptr<Optimizer> lion(LionOptions options = {});

}  // namespace palimpsest
