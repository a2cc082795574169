#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace palimpsest {

/// Seconds as `12 s`, `3:04` (minutes) or `1:02:03` (hours).
std::string format_seconds(double seconds);

/// The line of a progress bar after `step` of `steps`, without an end of line.
std::string progress_line(std::string_view label, std::int64_t step, std::int64_t steps,
                          double elapsed_seconds, std::string_view text);

/// The first `columns` characters of a text in UTF-8.
std::string_view first_columns(std::string_view text, std::int64_t columns);

}  // namespace palimpsest
