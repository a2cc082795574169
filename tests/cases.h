#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>

/// Scales the number of cases of a test by the build's `property_cases`, relative to 100. Checks of
/// every change try fewer cases, long checks more. At least one.
inline int cases(int at_100) {
  const char* const parameters = std::getenv("RC_PARAMS");
  const std::string text = parameters != nullptr ? parameters : "";
  const std::string key = "max_success=";
  const std::size_t place = text.find(key);
  const int wanted = place == text.npos ? 100 : std::atoi(text.c_str() + place + key.size());
  return std::max(1, at_100 * wanted / 100);
}
