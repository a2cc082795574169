#pragma once

#include <string_view>

namespace palimpsest {

/// Functions and types of <math.h>, <stdint.h> and <string.h>, also those that common libraries add
/// to the standard ones, and macros with parameters. A function of the same name would declare them
/// again, or not be one. Also symbols that glibc exports without declaring them, such as `step`: a
/// shared library would call these in place of its own function.
bool is_c_library_name(std::string_view name);

/// Macros without parameters of these headers and of others that programs commonly include before
/// the exported one, such as `EOF` of <stdio.h>. No name in a file may be one of them.
bool is_c_library_macro(std::string_view name);

}  // namespace palimpsest
