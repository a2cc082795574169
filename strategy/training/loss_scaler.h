#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/backward.h"

namespace palimpsest {

/// How a `LossScaler` chooses its scale. All factors are powers of two, so that scaling rounds
/// nothing.
struct LossScalerOptions {
  double scale = 0x1p16;  ///< of the first step
  double growth = 2;      ///< factor after `interval` steps in a row without overflow
  double backoff = 0.5;   ///< factor after an overflow
  int interval = 2000;
  double smallest = 1;  ///< the scale never leaves these bounds
  double largest = 0x1p24;
};

/// Dynamic loss scaling (Micikevicius et al., 2018), for what is computed in f16: the loss is
/// scaled up so that small adjoints do not vanish, the gradients are scaled down again, and a step
/// whose gradients overflowed is left out.
///
///     const Gradients gradients = backward(scaler.scale(loss));
///     if (scaler.unscale(gradients)) optimizer->step(gradients);
class LossScaler {
 public:
  /// Throws `ArgumentError` for a factor that is no power of two, a growth below 1, a backoff not
  /// below 1, an interval below 1, and a scale out of its bounds.
  explicit LossScaler(const LossScalerOptions& options = {});

  /// The loss times the scale, in f32 or wider. The scale is a constant of the tape: programs stay
  /// the same when it changes.
  Var scale(const Var& loss, Where where = Where::current());
  /// Divides the gradients of a scaled loss by its scale, in place, and decides on the scale of the
  /// next one. False where an element is no finite number: the step is to be left out. The same
  /// bits at any number of threads. Throws `ArgumentError` before the first `scale`.
  bool unscale(const Gradients& gradients);
  /// The same of gradients and their loss that stand apart, in whose memory the loss is unscaled
  /// too, put together with a report that tells of scale and overflow. Takes no memory of its own:
  /// nothing fails but what was never scaled.
  Gradients unscaled(Tensor loss, std::vector<Gradients::Entry> entries, Report report);

  /// Of the next loss.
  double scale() const { return scale_; }
  /// The loss of the gradients unscaled last, as it was before it was scaled.
  double loss() const { return loss_; }
  std::int64_t steps() const { return steps_; }      ///< unscaled so far
  std::int64_t skipped() const { return skipped_; }  ///< of these, with an overflow
  std::int64_t growths() const { return growths_; }  ///< how often the scale grew

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
