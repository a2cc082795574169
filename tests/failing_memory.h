#pragma once

#include <cstdint>

namespace palimpsest {

/// From here on, `before` allocations of this process succeed, and the one after them fails.
void fail_allocation(std::int64_t before);
/// Lets all succeed again; true if one failed.
bool end_failing();

}  // namespace palimpsest
