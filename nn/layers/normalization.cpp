#include "nn/layers/normalization.h"

#include <algorithm>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/normalization.h"

namespace palimpsest::nn {

LayerNorm::LayerNorm(Parameters parameters, std::int64_t width, double small)
    : weight(parameters.add("weight", {width}, init::ones(), {})),
      bias(parameters.add("bias", {width}, init::zeros(), {})),
      epsilon(small) {}

Var LayerNorm::operator()(const Var& x) const {
  return layer_norm(x, weight.on(x), bias.on(x), epsilon);
}

RmsNorm::RmsNorm(Parameters parameters, std::int64_t width, double small)
    : weight(parameters.add("weight", {width}, init::ones(), {})), epsilon(small) {}

Var RmsNorm::operator()(const Var& x) const { return rms_norm(x, weight.on(x), epsilon); }

GroupNorm::GroupNorm(Parameters parameters, std::int64_t channels, std::int64_t group_count,
                     double small)
    : weight(parameters.add("weight", {channels}, init::ones(), {})),
      bias(parameters.add("bias", {channels}, init::zeros(), {})),
      groups(group_count),
      epsilon(small) {}

Var GroupNorm::operator()(const Var& x) const {
  return group_norm(x, groups, weight.on(x), bias.on(x), epsilon);
}

BatchNormLayer::BatchNormLayer(Parameters parameters, std::int64_t channels,
                               const BatchNormOptions& given)
    : weight(parameters.add("weight", {channels}, init::ones(), {})),
      bias(parameters.add("bias", {channels}, init::zeros(), {})),
      mean(
          parameters.add_state("running_mean", Tensor::zeros({channels}, weight.tensor().dtype()))),
      variance(
          parameters.add_state("running_var", Tensor::ones({channels}, weight.tensor().dtype()))),
      options(given),
      mode_(parameters) {
  if (!(options.momentum >= 0 && options.momentum <= 1)) {
    throw ArgumentError("[batch norm] the momentum is " + std::to_string(options.momentum) +
                        "; give the weight of a new batch, from 0 to 1");
  }
}

Var BatchNormLayer::operator()(const Var& x) const {
  if (!mode_.is_training()) {
    return batch_norm(x, mean.on(x), variance.on(x), weight.on(x), bias.on(x), options.epsilon);
  }
  const BatchNorm made = batch_norm(x, weight.on(x), bias.on(x), options.epsilon);
  const Tape::NoGradient blocked(x.tape());
  const std::int64_t count = x.shape().elements() / std::max<std::int64_t>(1, x.shape()[1]);
  const double unbiased =
      static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, count - 1));
  const auto update = [&](const Parameter& running, const Var& of_batch, double factor) {
    const Var old = cast(running.on(x), of_batch.dtype());
    const Var now = old * (1 - options.momentum) + of_batch * (options.momentum * factor);
    x.tape().update_after_run(running.tensor(), cast(now, running.tensor().dtype()));
  };
  update(mean, made.mean, 1);
  update(variance, made.variance, unbiased);
  return made.y;
}

}  // namespace palimpsest::nn
