#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "autodiff/export.h"
#include "strategy/training/parameter_groups.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Optimizer;

/// Adafactor without momentum (Shazeer and Stern, 2018), by PyTorch's formulas. It keeps the mean
/// square of the gradient for every row and column of a parameter's last two axes, not for every
/// element. An n × m matrix thus has n + m numbers of state.
///
/// At step t, with ρ = min(η, 1/√t) and β = 1 − t^decay_exponent:
///
///     r = RMS(p), then p ← p − ηλp
///     rows ← β·rows + (1−β)·(mean of g² over columns), columns likewise
///     V = rows·columns / max(mean of rows, ε₁)
///     U = g / √max(V, ε₁²)
///     p ← p − ρ·max(ε₂, r)·U / max(1, RMS(U)/d)
///
/// A parameter with fewer axes keeps V itself.
struct AdafactorOptions {
  double learning_rate = 0.01;
  double decay_exponent = -0.8;
  /// ε₁. By default the distance from 1 to the next number of the state's dtype: 2⁻²³ for f32.
  std::optional<double> epsilon1 = {};
  double epsilon2 = 1e-3;     ///< ε₂
  double clip_threshold = 1;  ///< d
  double weight_decay = 0;
  std::vector<ParameterGroup> groups = {};
};

/// Throws `ArgumentError` for a negative rate, weight decay or epsilon, for a threshold that is not
/// positive, and for an exponent above 0.
std::unique_ptr<Optimizer> adafactor(AdafactorOptions options = {});

}  // namespace palimpsest
