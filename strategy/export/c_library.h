#pragma once

#include <string_view>

namespace palimpsest {

/// Functions and types of <math.h>, <stdint.h> and <string.h>, also those that common libraries add
/// to the standard ones. A function of the same name would declare them again.
bool is_c_library_name(std::string_view name);

/// Macros of these headers that are no functions. No name in a file may be one of them.
bool is_c_library_macro(std::string_view name);

}  // namespace palimpsest
