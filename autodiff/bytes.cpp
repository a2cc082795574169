#include "autodiff/bytes.h"

#include <cstdio>

namespace palimpsest {

std::string format_bytes(Bytes n) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (n < 1024 && n > -1024) return std::to_string(n) + " B";
  double value = static_cast<double>(n);
  int unit = 0;
  while ((value >= 1024 || value <= -1024) && unit < 4) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %s", value, units[unit]);
  return text;
}

}  // namespace palimpsest
