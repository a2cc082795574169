#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/default_options.h"
#include "autodiff/export.h"
#include "strategy/backward.h"
#include "strategy/training/safetensors.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How a `LossScaler` chooses its scale. All factors are powers of two, so scaling never rounds.
struct LossScalerOptions {
  double scale = 0x1p16;  ///< for the first step
  double growth = 2;      ///< factor after `interval` consecutive steps without overflow
  double backoff = 0.5;   ///< factor after an overflow
  int interval = 2000;    ///< steps
  double smallest = 1;    ///< bound of the scale
  double largest = 0x1p24;
};

/// Dynamic loss scaling (Micikevicius et al., 2018), for computing in f16. The loss is scaled up so
/// that small adjoints do not vanish. The gradients are scaled down again, and a step whose
/// gradients overflowed is skipped.
///
///     const Gradients gradients = backward(scaler.scale(loss));
///     if (scaler.unscale(gradients)) optimizer->step(gradients);
class LossScaler {
 public:
  /// Throws `ArgumentError` for a factor that is not a power of two, and for a growth below 1 or a
  /// backoff of 1 or more. Also throws it for an interval below 1 and a scale out of its bounds.
  explicit LossScaler(const LossScalerOptions& options = {});
  explicit LossScaler(DefaultOptions) : LossScaler() {}

  /// The loss times the scale, in f32 or wider. The scale is a constant leaf of the tape, so plans
  /// stay the same when it changes. A recorded `Program` keeps the scale that it was recorded with:
  /// record it again when `scale()` has changed.
  Var scale(const Var& loss, Where where = Where::current());
  /// Divides the gradients of a scaled loss by its scale, in place, and updates the scale for the
  /// next loss. Returns false where an element is not finite: the step must be skipped. The bits do
  /// not depend on the number of threads. Throws `ArgumentError` before the first `scale`.
  bool unscale(const Gradients& gradients);
  /// Likewise, for a loss and gradients given separately. The loss is unscaled in place too.
  /// Returns them with the auxiliary outputs and the report, to which it adds the scale and whether
  /// there was an overflow. It allocates no memory, and throws only before the first `scale`.
  Gradients unscaled(Tensor loss, std::vector<Gradients::Entry> entries, Report report,
                     std::vector<Tensor> outputs = {});

  /// The scale of the next loss.
  double scale() const { return scale_; }
  /// The loss that belongs to the gradients unscaled last, before scaling.
  double loss() const { return loss_; }

  std::int64_t steps() const { return steps_; }      ///< unscaled so far
  std::int64_t skipped() const { return skipped_; }  ///< of these, steps with an overflow
  std::int64_t growths() const { return growths_; }  ///< how often the scale grew

  /// Everything that later steps depend on, except the options: the entries "scale" and "loss"
  /// (f64), "without_overflow", "steps", "skipped" and "growths" (i64).
  NamedTensors state() const;
  /// Throws what `load_state` would throw. Changes nothing.
  void check_state(const NamedTensors& state) const;
  /// Continues from a saved state, between two steps. Throws `ArgumentError` for an entry that is
  /// missing, unknown or negative and for a scale that the options do not allow. Throws
  /// `ShapeError` and `DTypeError` for an entry of another type. Then nothing has changed.
  void load_state(const NamedTensors& state);

 private:
  bool unscale(std::span<const Gradients::Entry> entries, double loss);

  LossScalerOptions options_;
  double scale_;
  double used_ = 0;  // by the loss scaled last
  double loss_ = 0;
  int in_a_row_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t skipped_ = 0;
  std::int64_t growths_ = 0;
};

}  // namespace palimpsest
