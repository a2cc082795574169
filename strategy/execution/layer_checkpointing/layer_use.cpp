#include "strategy/execution/layer_checkpointing/layer_use.h"

#include <cstdio>
#include <ostream>

namespace palimpsest {

std::string LayerUse::summary() const {
  int passes = 0;
  for (const int each : forward_passes) passes += each;
  return "kept " + format_bytes(kept) + " (" + std::to_string(kept_activations) +
         (kept_activations == 1 ? " activation), peak " : " activations), peak ") +
         format_bytes(peak) + ", " + std::to_string(passes) + " forward passes of " +
         std::to_string(forward_passes.size()) +
         (forward_passes.size() == 1 ? " layer" : " layers");
}

std::string LayerForecast::summary() const {
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, ", %.1f %% of %s, compute factor %.3f",
                100 * (1 - saved_fraction()), format_bytes(keep_all).c_str(), compute_factor);
  return use.summary() + numbers;
}

std::ostream& operator<<(std::ostream& stream, const LayerUse& use) {
  return stream << use.summary();
}

std::ostream& operator<<(std::ostream& stream, const LayerForecast& forecast) {
  return stream << forecast.summary();
}

}  // namespace palimpsest
