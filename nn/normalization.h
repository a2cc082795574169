#pragma once

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "autodiff/operations/normalization.h"
#include "nn/parameters.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn {

/// `layer_norm` over the last axis, with weights of 1 and biases of 0 at first. Adds "weight" and
/// "bias". `small` is the epsilon that is added to the variance.
struct LayerNorm {
  Parameter weight;  ///< (width)
  Parameter bias;    ///< (width)
  double epsilon;

  LayerNorm(Parameters parameters, std::int64_t width, double small = 1e-5);
  Var operator()(const Located& x) const;
};

/// `rms_norm` over the last axis, with weights of 1 at first. Adds "weight". `small` is the epsilon
/// that is added to the mean square.
struct RmsNorm {
  Parameter weight;  ///< (width)
  double epsilon;

  RmsNorm(Parameters parameters, std::int64_t width, double small = 1e-6);
  Var operator()(const Located& x) const;
};

/// `group_norm` of x (batch, channels, …). As many groups as channels give `instance_norm`. Adds
/// "weight" and "bias". `small` is the epsilon that is added to the variance.
struct GroupNorm {
  Parameter weight;  ///< (channels)
  Parameter bias;    ///< (channels)
  std::int64_t groups;
  double epsilon;

  GroupNorm(Parameters parameters, std::int64_t channels, std::int64_t group_count,
            double small = 1e-5);
  Var operator()(const Located& x) const;
};

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< weight of the new batch in the running statistics, in [0, 1]
};

/// `batch_norm` of x (batch, channels, …). In training it uses the statistics of the batch, and
/// otherwise the running ones. The run that computes gradients updates these once per step, however
/// often it recomputes the forward part (see `Tape::update_after_run`). In a cut batch each part is
/// normalized by its own statistics, and the running ones take the mean over the parts. As in
/// PyTorch, the running variance is the unbiased one.
struct BatchNormLayer {
  Parameter weight;    ///< (channels)
  Parameter bias;      ///< (channels)
  Parameter mean;      ///< (channels), a state
  Parameter variance;  ///< (channels), a state
  BatchNormOptions options;

  /// Adds "weight", "bias", "running_mean" and "running_var". Throws `ArgumentError` for a momentum
  /// outside [0, 1].
  BatchNormLayer(Parameters parameters, std::int64_t channels, const BatchNormOptions& given = {});

  Var operator()(const Located& x) const;

 private:
  Parameters mode_;
};

/// A weight given by directions and magnitudes (see `weight_norm`). Use `on` as that of a
/// `Parameter`: `linear(x, weight.on(x))`.
struct WeightNorm {
  Parameter direction;
  Parameter magnitude;  ///< (size of the axis)
  int axis;

  /// Adds "weight_v", and "weight_g" with its norms, so that both weights are equal at first.
  /// Throws `ShapeError` for an axis that does not exist.
  WeightNorm(Parameters parameters, const Shape& shape, const init::Initializer& initializer,
             const init::Fans& fans, int kept_axis = 0, Where where = Where::current());
  Var on(const Located& x) const;
};

/// A weight divided by an estimate of its largest singular value (see `spectral_norm`). The run
/// that computes gradients in training stores the improved vector u, once per step. Otherwise u
/// stays.
struct SpectralNormLayer {
  Parameter weight;
  Parameter u;  ///< (rows), a state
  SpectralNormOptions options;

  /// Adds "weight", and "u" after some steps of the power method. Throws `ShapeError` for an axis
  /// that does not exist.
  SpectralNormLayer(Parameters parameters, const Shape& shape, const init::Initializer& initializer,
                    const init::Fans& fans, const SpectralNormOptions& given = {},
                    Where where = Where::current());
  /// The normalized weight on the tape of x.
  Var on(const Located& x) const;

 private:
  Parameters mode_;
};

}  // namespace nn
}  // namespace palimpsest
