#pragma once

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "autodiff/operations/convolution.h"
#include "nn/parameters.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn {

struct ConvolutionLayerOptions {
  ConvolutionOptions convolution = {};
  bool bias = true;
  init::Initializer weight_init = init::fan_in_uniform();
  init::Initializer bias_init = init::fan_in_uniform();
};

/// `convolution` with its weights; the base of layers for one to three axes.
struct Convolution {
  Parameter weight;  ///< (outputs, inputs/groups, kernel), as in PyTorch
  Parameter bias;    ///< (outputs), or undefined
  ConvolutionOptions options;

  /// Adds the parameters "weight" and "bias". `kernel` has one size for each axis of space. Throws
  /// `ArgumentError` unless the groups divide the inputs.
  Convolution(Parameters parameters, std::int64_t inputs, std::int64_t outputs, const Shape& kernel,
              const ConvolutionLayerOptions& given = {});

  Var operator()(const Located& x) const;
};

/// Sequences (batch, inputs, length), with a kernel of one size.
struct Conv1d : Convolution {
  Conv1d(const Parameters& parameters, std::int64_t inputs, std::int64_t outputs,
         std::int64_t kernel, const ConvolutionLayerOptions& given = {})
      : Convolution(parameters, inputs, outputs, {kernel}, given) {}
};

/// Images (batch, inputs, height, width), with a square kernel.
struct Conv2d : Convolution {
  Conv2d(const Parameters& parameters, std::int64_t inputs, std::int64_t outputs,
         std::int64_t kernel, const ConvolutionLayerOptions& given = {})
      : Convolution(parameters, inputs, outputs, {kernel, kernel}, given) {}
};

/// Volumes (batch, inputs, depth, height, width), with a cubic kernel.
struct Conv3d : Convolution {
  Conv3d(const Parameters& parameters, std::int64_t inputs, std::int64_t outputs,
         std::int64_t kernel, const ConvolutionLayerOptions& given = {})
      : Convolution(parameters, inputs, outputs, {kernel, kernel, kernel}, given) {}
};

}  // namespace nn
}  // namespace palimpsest
