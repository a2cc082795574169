#pragma once

#include <cstdint>

namespace palimpsest {

/// Lets the next `before` allocations of this process succeed and makes the one after them fail.
/// Counts operators new and, if failing_maps.cpp is linked, mmap and mremap.
void fail_allocation(std::int64_t before);
/// Lets all allocations succeed again. Returns whether one failed.
bool end_failing();
/// Blocks of operators new and mapped bytes that have not been released.
std::int64_t allocations_held();

/// Whether this allocation is the one to fail.
bool is_to_fail();
/// Records `count` successful allocations; a negative number records releases.
void note_allocations(std::int64_t count);

}  // namespace palimpsest
