#include "strategy/compile/native/speed_trial.h"

#include <algorithm>

namespace palimpsest {

void SpeedTrial::Runs::add(double seconds) {
  if (last.size() < enough) {
    last.push_back(seconds);
  } else {
    last[runs % enough] = seconds;
  }
  ++runs;
  sum += seconds;
}

double SpeedTrial::Runs::least() const {
  return last.empty() ? 0 : *std::ranges::min_element(last);
}
double SpeedTrial::Runs::most() const { return last.empty() ? 0 : *std::ranges::max_element(last); }

void SpeedTrial::add(bool native, double seconds) {
  if (outcome_ != Outcome::open) return;
  (native ? native_ : interpreted_).add(seconds);
  if (!native && native_.runs > 0) ++since_native_;
  outcome_ = decide();
}

SpeedTrial::Outcome SpeedTrial::decide() const {
  if (native_.runs < enough_long || interpreted_.runs < enough_long) return Outcome::open;
  if (native_.sum >= long_seconds && native_.most() < interpreted_.least()) return Outcome::native;
  const bool is_clearly_slower = native_.sum >= long_seconds && since_native_ >= enough_long &&
                                 native_.least() > interpreted_.most();
  if (is_clearly_slower) return Outcome::interpreter;
  if (native_.runs < enough || since_native_ < enough) return Outcome::open;
  return native_.least() <= interpreted_.least() ? Outcome::native : Outcome::interpreter;
}

}  // namespace palimpsest
