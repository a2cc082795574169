#include "data/progress_line.h"

#include <algorithm>
#include <cmath>

#include "autodiff/shape.h"

namespace palimpsest {

std::string format_seconds(double seconds) {
  const std::int64_t whole = std::llround(std::min(seconds, 1e15));
  if (whole < 60) return std::to_string(whole) + " s";
  const auto two_digits = [](std::int64_t n) { return (n < 10 ? ":0" : ":") + std::to_string(n); };
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  return (hours > 0 ? std::to_string(hours) + two_digits(minutes) : std::to_string(minutes)) +
         two_digits(whole % 60);
}

std::string progress_line(std::string_view label, std::int64_t step, std::int64_t steps,
                          double elapsed_seconds, std::string_view text) {
  constexpr std::size_t label_width = 10;
  constexpr std::size_t bar_width = 24;
  const double share = steps > 0 ? static_cast<double>(step) / static_cast<double>(steps) : 1;
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(bar_width));
  std::string line(label);
  line.resize(std::max(line.size(), label_width), ' ');
  line += " [" + std::string(filled, '#') + std::string(bar_width - filled, '.') + "] " +
          std::to_string(steps > 0 ? multiply_sizes(step, 100) / steps : 100) + " %, " +
          format_seconds(elapsed_seconds);
  if (step > 0 && step < steps) {
    line += ", " + format_seconds(elapsed_seconds / share - elapsed_seconds) + " left";
  }
  if (!text.empty()) line.append(", ").append(text);
  return line;
}

std::string_view first_columns(std::string_view text, std::int64_t columns) {
  std::size_t end = 0;
  while (end < text.size()) {
    const bool begins_character = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;
    if (begins_character && columns-- == 0) break;
    ++end;
  }
  return text.substr(0, end);
}

}  // namespace palimpsest
