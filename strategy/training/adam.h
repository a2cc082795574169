#pragma once

#include <memory>
#include <vector>

#include "autodiff/export.h"
#include "strategy/training/parameter_groups.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Optimizer;

/// Adam with bias correction (Kingma and Ba, 2015). The decay times the parameter is added to the
/// gradient. `epsilon` is added to the root.
struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  std::vector<ParameterGroup> groups = {};
};

/// AdamW (Loshchilov and Hutter, 2019). Like Adam, except that a parameter is multiplied by
/// 1 − rate·decay, and the gradient has no decay.
struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::vector<ParameterGroup> groups = {};
};

/// Throw `ArgumentError` for a negative rate, weight decay or epsilon, and for a beta outside
/// [0, 1).
std::unique_ptr<Optimizer> adam(AdamOptions options = {});
std::unique_ptr<Optimizer> adamw(AdamWOptions options = {});

}  // namespace palimpsest
