#include "strategy/profile.h"

#include <algorithm>
#include <bit>

namespace palimpsest {

Profile::Profile(std::span<const Report> reports) {
  for (const Report& report : reports) {
    if (report.steps.empty() && report.computed > 0) {
      throw ArgumentError(
          "[profile] a run was not profiled; run it with .profile = true in its options");
    }
    for (const Report::Step& step : report.steps) {
      const double seconds = static_cast<double>(step.event.end - step.event.start) * 1e-9;
      const auto [entry, is_new] = seconds_.emplace(step.work, seconds);
      // What else the machine did only ever added to them.
      if (!is_new) entry->second = std::min(entry->second, seconds);
    }
  }
  for (const auto& [work, seconds] : seconds_) {
    const std::uint64_t words[] = {std::hash<std::string>()(work),
                                   std::bit_cast<std::uint64_t>(seconds)};
    for (const std::uint64_t word : words) hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15u + 1;
  }
}

std::optional<double> Profile::seconds(const std::string& work) const {
  const auto found = seconds_.find(work);
  if (found == seconds_.end()) return {};
  return found->second;
}

}  // namespace palimpsest
