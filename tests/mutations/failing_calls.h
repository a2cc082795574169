#pragma once

#include <cstdint>

namespace palimpsest {

/// From here on, `before` calls of this process to the file system succeed, and the one after them
/// fails: of those that open, read, write, look at, lock, rename and remove files.
void fail_file_call(std::int64_t before);
/// Lets all succeed again. Returns the name of the function that failed, or null.
const char* end_failing_calls();

}  // namespace palimpsest
