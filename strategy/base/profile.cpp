#include "strategy/base/profile.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace palimpsest {

Profile::Profile(std::span<const Report> reports) {
  std::map<std::string, std::vector<double>> times;
  for (const Report& report : reports) {
    if (report.steps.empty() && report.computed > 0) {
      throw ArgumentError(
          "[profile] a run was not profiled; run it with .profile = true in its options");
    }
    for (const Report::Step& step : report.steps) {
      times[step.work].push_back(static_cast<double>(step.event.end - step.event.start) * 1e-9);
    }
  }
  for (auto& [work, all] : times) {
    const auto median = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
    std::ranges::nth_element(all, median);
    seconds_.emplace(work, *median);
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
