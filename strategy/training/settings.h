#pragma once

#include <string>

#include "autodiff/error.h"
#include "autodiff/number_text.h"

namespace palimpsest {

inline constexpr const char* not_negative = "0 or more";
inline constexpr const char* positive = "a positive number";
inline constexpr const char* below_one = "0 or more and less than 1";

/// Throws `ArgumentError` unless `holds`. `allowed` says which values are.
inline void require_setting(bool holds, const std::string& owner, const std::string& setting,
                            double value, const char* allowed) {
  if (holds) return;
  throw ArgumentError("[" + owner + "] " + setting + " is " + number_text(value) + "; give " +
                      allowed);
}

inline void require_not_negative(const std::string& owner, const std::string& setting,
                                 double value) {
  require_setting(value >= 0, owner, setting, value, not_negative);
}

inline void require_below_one(const std::string& owner, const std::string& setting, double value) {
  require_setting(value >= 0 && value < 1, owner, setting, value, below_one);
}

}  // namespace palimpsest
