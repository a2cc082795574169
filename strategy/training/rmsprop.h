#pragma once

#include <memory>
#include <vector>

#include "autodiff/export.h"
#include "strategy/training/parameter_groups.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Optimizer;

/// RMSprop (Tieleman and Hinton, 2012) by PyTorch's formula: s ← αs + (1−α)g²; p ← p − ηg/(√s + ε).
/// The decay times the parameter is added to the gradient.
///
/// `centered` keeps the mean m ← m + (1−α)(g − m) and divides by √(s − m²) + ε (Graves, 2013). If
/// rounding makes s − m² negative it counts as 0; in PyTorch the update is NaN. With momentum,
/// v ← μv + g/(√s + ε); p ← p − ηv.
struct RmspropOptions {
  double learning_rate = 0.01;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  bool centered = false;
  double weight_decay = 0;
  std::vector<ParameterGroup> groups = {};
};

/// Throws `ArgumentError` for a negative rate, weight decay or epsilon, and for a momentum or alpha
/// outside [0, 1).
std::unique_ptr<Optimizer> rmsprop(RmspropOptions options = {});

}  // namespace palimpsest
