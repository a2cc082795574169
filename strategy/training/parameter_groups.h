#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A parameter as optimizers see it.
struct ParameterInfo {
  std::string name;  ///< with its scopes, as in "layer3/norm/bias"; empty without a name
  ValueType type;
};

/// Selects parameters.
using ParameterPredicate = std::function<bool(const ParameterInfo&)>;

/// Selects names that end in one of `endings`, such as "bias". Scopes are part of a name.
ParameterPredicate names_ending(std::vector<std::string> endings);
/// Selects parameters of at most `axes` axes. With 1 these are the biases, and the factors of
/// normalisations. Throws `ArgumentError` for a negative number.
ParameterPredicate axes_at_most(int axes);

/// Settings of an optimizer for some of its parameters.
struct ParameterGroup {
  ParameterPredicate matches = {};          ///< selects the parameters; must be set
  double learning_rate_factor = 1;          ///< multiplies the optimizer's rate
  std::optional<double> weight_decay = {};  ///< instead of the optimizer's
};

}  // namespace palimpsest
