#include "strategy/training/rate_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "autodiff/require_function.h"
#include "strategy/training/settings.h"

namespace palimpsest {
namespace {

void require_steps(const char* schedule, const char* setting, std::int64_t steps) {
  require_setting(steps >= 1, schedule, setting, static_cast<double>(steps), "1 or more");
}

/// From `first` at share 0 to `last` at share 1.
double along_cosine(double first, double last, double share) {
  return last + (first - last) / 2 * (1 + std::cos(std::numbers::pi * share));
}

/// A part of a cycle; the part before it gives its first rate and step.
struct CyclePhase {
  double last_step;
  double last_rate;
};

}  // namespace

RateSchedule::RateSchedule(std::function<double(std::int64_t)> rate, Where where)
    : rate_(std::move(rate)) {
  detail::require_function(rate_, "schedule", "the rate", "returns the rate of a step", where);
}

double RateSchedule::at(std::int64_t step) const {
  require_setting(step >= 0, "schedule", "the step", static_cast<double>(step), not_negative);
  const double rate = rate_(step);
  const bool is_rate = rate >= 0 && std::isfinite(rate);
  require_setting(is_rate, "schedule", "the rate of step " + std::to_string(step), rate,
                  "a finite number, 0 or more");
  return rate;
}

RateSchedule constant_rate(double rate) {
  require_not_negative("constant_rate", "rate", rate);
  return RateSchedule([rate](std::int64_t) { return rate; });
}

RateSchedule step_decay(const StepDecayOptions& options) {
  require_not_negative("step_decay", "rate", options.rate);
  require_not_negative("step_decay", "factor", options.factor);
  require_steps("step_decay", "every", options.every);
  return RateSchedule([options](std::int64_t step) {
    return options.rate * std::pow(options.factor, static_cast<double>(step / options.every));
  });
}

RateSchedule exponential_decay(const ExponentialDecayOptions& options) {
  require_not_negative("exponential_decay", "rate", options.rate);
  require_not_negative("exponential_decay", "factor", options.factor);
  return RateSchedule([options](std::int64_t step) {
    return options.rate * std::pow(options.factor, static_cast<double>(step));
  });
}

RateSchedule cosine_decay(const CosineDecayOptions& options) {
  require_not_negative("cosine_decay", "rate", options.rate);
  require_not_negative("cosine_decay", "lowest", options.lowest);
  require_steps("cosine_decay", "steps", options.steps);
  return RateSchedule([options](std::int64_t step) {
    const double share =
        static_cast<double>(std::min(step, options.steps)) / static_cast<double>(options.steps);
    return along_cosine(options.rate, options.lowest, share);
  });
}

RateSchedule warm_up(const WarmUpOptions& options, RateSchedule after) {
  require_not_negative("warm_up", "start_factor", options.start_factor);
  require_steps("warm_up", "steps", options.steps);
  return RateSchedule([options, after = std::move(after)](std::int64_t step) {
    if (step >= options.steps) return after.at(step - options.steps);
    const double share = static_cast<double>(step) / static_cast<double>(options.steps);
    return after.at(0) * (options.start_factor + (1 - options.start_factor) * share);
  });
}

RateSchedule one_cycle(const OneCycleOptions& options) {
  require_not_negative("one_cycle", "highest", options.highest);
  require_steps("one_cycle", "steps", options.steps);
  const double most = options.three_phases ? 0.5 : 1;
  require_setting(options.rising_share >= 0 && options.rising_share <= most, "one_cycle",
                  "rising_share", options.rising_share,
                  options.three_phases ? "0 or more and at most 0.5" : "0 or more and at most 1");
  require_setting(options.start_divisor > 0, "one_cycle", "start_divisor", options.start_divisor,
                  positive);
  require_setting(options.end_divisor > 0, "one_cycle", "end_divisor", options.end_divisor,
                  positive);
  const auto steps = static_cast<double>(options.steps);
  const double first = options.highest / options.start_divisor;
  const double top = options.rising_share * steps - 1;
  const std::array<CyclePhase, 3> phases = {
      {{top, options.highest},
       {options.three_phases ? 2 * top : top, options.three_phases ? first : options.highest},
       {steps - 1, first / options.end_divisor}}};
  return RateSchedule([=, linear = options.linear](std::int64_t step) {
    const double at = std::min(static_cast<double>(step), steps - 1);
    CyclePhase before{0, first};
    for (const CyclePhase& phase : phases) {
      if (at > phase.last_step || phase.last_step <= before.last_step) {
        before = {std::max(phase.last_step, before.last_step), phase.last_rate};
        continue;
      }
      const double share = (at - before.last_step) / (phase.last_step - before.last_step);
      return linear ? before.last_rate + (phase.last_rate - before.last_rate) * share
                    : along_cosine(before.last_rate, phase.last_rate, share);
    }
    return before.last_rate;
  });
}

}  // namespace palimpsest
