#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "strategy/base/report.h"

namespace palimpsest {

/// The seconds that kernels took in runs with `RunOptions::profile`, by what they computed: what
/// planners may go by in place of estimates. What is recorded, fused or kept in other ways later
/// finds the times of the work that it shares with these runs.
class Profile {
 public:
  /// Throws `ArgumentError` when one of the runs was not profiled.
  explicit Profile(std::span<const Report> reports);
  explicit Profile(const Report& report) : Profile({&report, 1}) {}

  /// The median of what such work (see `Report::Step::work`) took, of two the least; nothing where
  /// there was none. What else the machine did, and first touches of memory, are in few of them.
  std::optional<double> seconds(const std::string& work) const;
  /// Equal for equal profiles.
  std::uint64_t hash() const { return hash_; }

 private:
  std::map<std::string, double> seconds_;
  std::uint64_t hash_ = 0;
};

}  // namespace palimpsest
