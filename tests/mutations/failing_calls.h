#pragma once

#include <cstdint>

namespace palimpsest {

/// Lets the next `before` file system calls of this process succeed and makes the one after them
/// fail. Counts calls that open, read, write, stat, lock, rename and remove files.
void fail_file_call(std::int64_t before);
/// Lets all calls succeed again. Returns the name of the function that failed, or null.
const char* end_failing_calls();

}  // namespace palimpsest
