#include "strategy/training/plateau_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "strategy/training/settings.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {

PlateauSchedule::PlateauSchedule(const PlateauOptions& options)
    : options_(options),
      rate_(options.rate),
      best_(options.maximize ? -std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::infinity()) {
  const char* const owner = "plateau schedule";
  require_not_negative(owner, "rate", options.rate);
  require_setting(options.factor >= 0 && options.factor <= 1, owner, "factor", options.factor,
                  "0 or more and at most 1");
  require_not_negative(owner, "patience", options.patience);
  require_not_negative(owner, "cooldown", options.cooldown);
  require_not_negative(owner, "lowest", options.lowest);
  require_not_negative(owner, "threshold", options.threshold);
  require_not_negative(owner, "least_change", options.least_change);
}

bool PlateauSchedule::is_better(double metric) const {
  if (!std::isfinite(best_)) return options_.maximize ? metric > best_ : metric < best_;
  const double by = options_.threshold;
  if (options_.maximize) {
    return metric > (options_.threshold_is_absolute ? best_ + by : best_ * (1 + by));
  }
  return metric < (options_.threshold_is_absolute ? best_ - by : best_ * (1 - by));
}

double PlateauSchedule::observe(double metric) {
  if (is_better(metric)) {
    best_ = metric;
    without_improvement_ = 0;
  } else {
    ++without_improvement_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    without_improvement_ = 0;
  }
  if (without_improvement_ > options_.patience) {
    const double reduced = std::max(rate_ * options_.factor, options_.lowest);
    if (rate_ - reduced > options_.least_change) rate_ = reduced;
    cooldown_left_ = options_.cooldown;
    without_improvement_ = 0;
  }
  return rate_;
}

NamedTensors PlateauSchedule::state() const {
  return {{"rate", number_entry(rate_)},
          {"best", number_entry(best_)},
          {"without_improvement", integer_entry(without_improvement_)},
          {"cooldown_left", integer_entry(cooldown_left_)}};
}

void PlateauSchedule::check_state(const NamedTensors& state) const {
  PlateauSchedule(*this).load_state(state);
}

void PlateauSchedule::load_state(const NamedTensors& state) {
  const StateEntries entries(state, "plateau schedule");
  const double rate = entries.not_negative_number("rate");
  const double best = entries.number("best");
  const std::int64_t without_improvement = entries.count("without_improvement");
  const std::int64_t cooldown_left = entries.count("cooldown_left");
  entries.require_only({"rate", "best", "without_improvement", "cooldown_left"});
  rate_ = rate;
  best_ = best;
  without_improvement_ = without_improvement;
  cooldown_left_ = cooldown_left;
}

}  // namespace palimpsest
