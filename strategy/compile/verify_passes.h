#pragma once

namespace palimpsest {

/// True if passes check their results against their specifications: in builds with assertions, and
/// in processes with `PALIMPSEST_VERIFY` set.
bool verifies_passes();

/// True when an environment variable is set and not empty.
bool is_set(const char* variable);

}  // namespace palimpsest
