#include "nn/linear.h"

#include "autodiff/operations/products.h"

namespace palimpsest::nn {

Linear::Linear(Parameters parameters, std::int64_t inputs, std::int64_t outputs,
               const LinearOptions& options) {
  const init::Fans fans{inputs, outputs};
  weight = parameters.add("weight", {inputs, outputs}, options.weight_init, fans);
  if (options.bias) bias = parameters.add("bias", {outputs}, options.bias_init, fans);
}

Linear::Linear(Parameter given_weight, Parameter given_bias)
    : weight(std::move(given_weight)), bias(std::move(given_bias)) {}

Var Linear::operator()(const Located& x) const {
  const auto scope = weight.scope(x.var.tape());
  const Var w = weight.on(x);  // recorded before the bias
  return linear(x.var, w, bias.defined() ? bias.on(x) : Var(), x.where);
}

}  // namespace palimpsest::nn
