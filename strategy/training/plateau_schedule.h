#pragma once

#include <cstdint>

#include "autodiff/default_options.h"
#include "autodiff/export.h"
#include "strategy/training/safetensors.h"

namespace palimpsest PALIMPSEST_EXPORT {

struct PlateauOptions {
  double rate = 0.01;     ///< of the first steps
  double factor = 0.1;    ///< by which the rate is multiplied; at most 1
  int patience = 10;      ///< observations without improvement that are tolerated
  int cooldown = 0;       ///< observations after a reduction during which none counts
  double lowest = 0;      ///< rate
  bool maximize = false;  ///< larger metrics are better
  /// An improvement is larger than this fraction of the best metric, or than this number.
  double threshold = 1e-4;
  bool threshold_is_absolute = false;
  double least_change = 1e-8;  ///< a rate is not reduced by less
};

/// Reduces the learning rate when a metric stops improving, as PyTorch's `ReduceLROnPlateau`:
///
///     optimizer->set_learning_rate(plateau.observe(validation_loss));
class PlateauSchedule {
 public:
  /// Throws `ArgumentError` for a negative option, and for a factor above 1.
  explicit PlateauSchedule(const PlateauOptions& options = {});
  explicit PlateauSchedule(DefaultOptions) : PlateauSchedule() {}

  /// Takes the next value of the metric and returns the rate from now on. A NaN is no improvement.
  double observe(double metric);
  /// The current rate.
  double rate() const { return rate_; }

  /// The entries "rate" and "best" (f64), "without_improvement" and "cooldown_left" (i64).
  NamedTensors state() const;
  /// Throws what `load_state` would throw. Changes nothing.
  void check_state(const NamedTensors& state) const;
  /// Continues from a saved state. Throws `ArgumentError` for an entry that is missing, unknown or
  /// negative, `ShapeError` and `DTypeError` for one of another type; then nothing has changed.
  void load_state(const NamedTensors& state);

 private:
  bool is_better(double metric) const;

  PlateauOptions options_;
  double rate_;
  double best_;
  std::int64_t without_improvement_ = 0;
  std::int64_t cooldown_left_ = 0;
};

}  // namespace palimpsest
