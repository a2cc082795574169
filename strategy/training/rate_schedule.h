#pragma once

#include <cstdint>
#include <functional>

#include "autodiff/error.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A learning rate as a function of the step. The first step is step 0. It has no state, so a
/// resumed run only needs the number of its step:
///
///     const auto decay = cosine_decay({.rate = 0.1, .steps = 900});
///     const RateSchedule rate = warm_up({.steps = 100}, decay);
///     optimizer->set_learning_rate(rate(step));
///
/// The schedules below follow the formulas of PyTorch's schedulers of the same kind.
class RateSchedule {
 public:
  /// `rate(step)` must be 0 or more, and finite. Throws `ArgumentError` for an empty function.
  explicit RateSchedule(std::function<double(std::int64_t step)> rate,
                        Where where = Where::current());

  /// The rate for a step. Throws `ArgumentError` for a negative step, and where the function
  /// returns a negative rate or one that is not finite.
  double at(std::int64_t step) const;
  double operator()(std::int64_t step) const { return at(step); }

 private:
  std::function<double(std::int64_t)> rate_;
};

// All functions below throw `ArgumentError` for a negative rate or factor, and for a number of
// steps below 1.

/// The same rate at every step.
RateSchedule constant_rate(double rate);

/// rate·factor^⌊step/every⌋, as PyTorch's `StepLR`.
struct StepDecayOptions {
  double rate = 0.01;
  std::int64_t every = 1;  ///< steps
  double factor = 0.1;
};
RateSchedule step_decay(const StepDecayOptions& options);

/// rate·factor^step, as PyTorch's `ExponentialLR`.
struct ExponentialDecayOptions {
  double rate = 0.01;
  double factor = 0.99;
};
RateSchedule exponential_decay(const ExponentialDecayOptions& options);

/// Falls from `rate` to `lowest` in `steps` steps along half a cosine (Loshchilov and Hutter,
/// 2017), as PyTorch's `CosineAnnealingLR`. Then stays there, where PyTorch's rises again.
struct CosineDecayOptions {
  double rate = 0.01;
  std::int64_t steps = 1;
  double lowest = 0;
};
RateSchedule cosine_decay(const CosineDecayOptions& options);

/// Rises linearly for `steps` steps, from `start_factor` times the first rate of `after` to that
/// rate, and continues with `after` from its step 0. PyTorch's `LinearLR` followed by another
/// schedule in a `SequentialLR`.
struct WarmUpOptions {
  std::int64_t steps = 1;
  double start_factor = 1.0 / 3;
};
RateSchedule warm_up(const WarmUpOptions& options, RateSchedule after);

/// The one-cycle policy (Smith and Topin, 2019), as PyTorch's `OneCycleLR`: rises from
/// highest/start_divisor to `highest`, and falls to highest/(start_divisor·end_divisor). With
/// `three_phases` it first falls as long as it rose, to where it began. It stays at its last rate.
/// Momentum does not change.
struct OneCycleOptions {
  double highest = 0.01;
  std::int64_t steps = 1;     ///< in all phases
  double rising_share = 0.3;  ///< of the steps; at most 0.5 with three phases
  double start_divisor = 25;
  double end_divisor = 1e4;
  bool three_phases = false;
  bool linear = false;  ///< straight lines instead of half cosines
};
/// Also throws `ArgumentError` for a share outside [0, 1] and divisors that are not positive.
RateSchedule one_cycle(const OneCycleOptions& options);

}  // namespace palimpsest
