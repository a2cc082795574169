#pragma once

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "nn/parameters.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn {

struct LinearOptions {
  bool bias = true;
  init::Initializer weight_init = init::fan_in_uniform();
  init::Initializer bias_init = init::fan_in_uniform();
};

/// x·weight + bias: (…, inputs) to (…, outputs). Calls throw as `linear`.
struct Linear {
  Parameter weight;  ///< (inputs, outputs); PyTorch's is the transpose
  Parameter bias;    ///< (outputs), or undefined

  /// Adds the parameters "weight" and "bias".
  Linear(Parameters parameters, std::int64_t inputs, std::int64_t outputs,
         const LinearOptions& options = {});
  /// With parameters of another layer, or without a bias.
  explicit Linear(Parameter given_weight, Parameter given_bias = {});

  Var operator()(const Located& x) const;
};

}  // namespace nn
}  // namespace palimpsest
