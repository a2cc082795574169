#include "nn/normalization.h"

#include <algorithm>

#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"

namespace palimpsest::nn {
namespace {

/// The norms over all axes except one.
Tensor norms_along(const Tensor& weight, int axis, const Where& where) {
  Tape tape;
  const Var w = tape.constant(weight, {}, where);
  const int kept = w.shape().wrap(axis, "weight_norm", where);
  const Var rows = w.rank() == 1 ? unsqueeze(w, 1, where) : transpose(w, 0, kept, where);
  return norm(flatten(rows, 1, -1, where), 2, {1}, false, where).value().clone();
}

/// A left singular vector to start from.
Tensor first_vector(const Tensor& weight, SpectralNormOptions options, const Where& where) {
  Tape tape;
  options.iterations = 15;
  const Var w = tape.constant(weight, {}, where);
  const int rows = w.shape().wrap(options.axis, "spectral_norm", where);
  const Tensor random = Tensor::normal({w.shape()[rows]}, 1, 0, 1, w.dtype());
  return spectral_norm(w, tape.constant(random, {}, where), options, where).u.value().clone();
}

}  // namespace

LayerNorm::LayerNorm(Parameters parameters, std::int64_t width, double small)
    : weight(parameters.add("weight", {width}, init::ones(), {})),
      bias(parameters.add("bias", {width}, init::zeros(), {})),
      epsilon(small) {}

Var LayerNorm::operator()(const Located& x) const {
  const auto scope = weight.scope(x.var.tape());
  const Var w = weight.on(x);  // recorded before the bias
  return layer_norm(x.var, w, bias.on(x), epsilon, x.where);
}

RmsNorm::RmsNorm(Parameters parameters, std::int64_t width, double small)
    : weight(parameters.add("weight", {width}, init::ones(), {})), epsilon(small) {}

Var RmsNorm::operator()(const Located& x) const {
  const auto scope = weight.scope(x.var.tape());
  return rms_norm(x.var, weight.on(x), epsilon, x.where);
}

GroupNorm::GroupNorm(Parameters parameters, std::int64_t channels, std::int64_t group_count,
                     double small)
    : weight(parameters.add("weight", {channels}, init::ones(), {})),
      bias(parameters.add("bias", {channels}, init::zeros(), {})),
      groups(group_count),
      epsilon(small) {}

Var GroupNorm::operator()(const Located& x) const {
  const auto scope = weight.scope(x.var.tape());
  const Var w = weight.on(x);
  return group_norm(x.var, groups, w, bias.on(x), epsilon, x.where);
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
    throw ArgumentError("[batch norm] the momentum is " + number_text(options.momentum) +
                        "; give the weight of a new batch, from 0 to 1");
  }
}

Var BatchNormLayer::operator()(const Located& x) const {
  const auto scope = weight.scope(x.var.tape());
  const Var w = weight.on(x);
  const Var b = bias.on(x);
  if (!mode_.is_training()) {
    const Var center = mean.on(x);
    return batch_norm(x.var, center, variance.on(x), w, b, options.epsilon, x.where);
  }
  const BatchNorm made = batch_norm(x.var, w, b, options.epsilon, x.where);
  Tape& tape = x.var.tape();
  const Tape::NoGradient blocked(tape);
  const Shape shape = x.var.shape();
  const std::int64_t count = shape.elements() / std::max<std::int64_t>(1, shape[1]);
  const double unbiased =
      static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, count - 1));
  tape.update_after_run(mean.tensor(), made.mean, options.momentum, x.where);
  tape.update_after_run(variance.tensor(), Located(made.variance, x.where) * unbiased,
                        options.momentum, x.where);
  return made.y;
}

WeightNorm::WeightNorm(Parameters parameters, const Shape& shape,
                       const init::Initializer& initializer, const init::Fans& fans, int kept_axis,
                       Where where)
    : direction(parameters.add("weight_v", shape, initializer, fans)),
      magnitude(parameters.add("weight_g", norms_along(direction.tensor(), kept_axis, where))),
      axis(kept_axis) {}

Var WeightNorm::on(const Located& x) const {
  const auto scope = direction.scope(x.var.tape());
  const Var v = direction.on(x);
  return weight_norm(v, magnitude.on(x), axis, x.where);
}

SpectralNormLayer::SpectralNormLayer(Parameters parameters, const Shape& shape,
                                     const init::Initializer& initializer, const init::Fans& fans,
                                     const SpectralNormOptions& given, Where where)
    : weight(parameters.add("weight", shape, initializer, fans)),
      u(parameters.add_state("u", first_vector(weight.tensor(), given, where))),
      options(given),
      mode_(parameters) {}

Var SpectralNormLayer::on(const Located& x) const {
  const auto scope = weight.scope(x.var.tape());
  const Var w = weight.on(x);
  SpectralNormOptions now = options;
  if (!mode_.is_training()) now.iterations = 0;
  const SpectralNorm made = spectral_norm(w, u.on(x), now, x.where);
  if (mode_.is_training()) x.var.tape().update_after_run(u.tensor(), made.u, 1, x.where);
  return made.weight;
}

}  // namespace palimpsest::nn
