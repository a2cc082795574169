#include "nn/convolution.h"

#include <vector>

namespace palimpsest::nn {

Convolution::Convolution(Parameters parameters, std::int64_t inputs, std::int64_t outputs,
                         const Shape& kernel, const ConvolutionLayerOptions& given)
    : options(given.convolution) {
  if (options.groups < 1 || inputs % options.groups != 0) {
    throw ArgumentError("[convolution] " + std::to_string(options.groups) +
                        " groups do not divide " + std::to_string(inputs) +
                        " input channels; give a number of groups that does");
  }
  std::vector<std::int64_t> sizes{outputs, inputs / options.groups};
  sizes.insert(sizes.end(), kernel.begin(), kernel.end());
  const std::int64_t window = kernel.elements();
  const init::Fans fans{sizes[1] * window, outputs / options.groups * window};
  weight = parameters.add("weight", Shape(std::span<const std::int64_t>(sizes)), given.weight_init,
                          fans);
  if (given.bias) bias = parameters.add("bias", {outputs}, given.bias_init, fans);
}

Var Convolution::operator()(const Located& x) const {
  const auto scope = weight.scope(x.var.tape());
  const Var w = weight.on(x);  // recorded before the bias
  return convolution(x.var, w, bias.defined() ? bias.on(x) : Var(), options, x.where);
}

}  // namespace palimpsest::nn
