#include "autodiff/bytes.h"

#include <cstdio>

namespace palimpsest {

std::string format_bytes(Bytes n) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (n < 1024 && n > -1024) return std::to_string(n) + " B";
  double value = static_cast<double>(n);
  int unit = 0;
  while ((value >= 1023.5 || value <= -1023.5) && unit < 4) {  // 1023.5 KiB would read 1024 KiB
    value /= 1024;
    ++unit;
  }
  char text[32];
  const double size = value < 0 ? -value : value;
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, units[unit]);
  return text;
}

}  // namespace palimpsest
