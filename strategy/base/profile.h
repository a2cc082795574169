#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "autodiff/export.h"
#include "strategy/base/report.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Seconds that kernels took in runs with `RunOptions::profile`, by work. Planners can use them
/// instead of estimates. Programs that are recorded, fused or planned differently later find the
/// times of the work they share with these runs.
class Profile {
 public:
  /// Throws `ArgumentError` when one of the runs was not profiled.
  explicit Profile(std::span<const Report> reports);
  explicit Profile(const Report& report) : Profile({&report, 1}) {}

  /// The median time of such work (see `Report::Step::work`); of two times the smaller one. Nothing
  /// for unknown work. The median ignores outliers, such as other activity of the machine and first
  /// touches of memory.
  std::optional<double> seconds(const std::string& work) const;
  /// Equal for equal profiles.
  std::uint64_t hash() const { return hash_; }

 private:
  std::map<std::string, double> seconds_;
  std::uint64_t hash_ = 0;
};

}  // namespace palimpsest
