#pragma once

#include <cstdint>

namespace palimpsest {

/// From here on, `before` allocations of this process succeed, and the one after them fails: of
/// operators new and, where failing_maps.cpp is linked, of mmap and mremap.
void fail_allocation(std::int64_t before);
/// Lets all succeed again; true if one failed.
bool end_failing();
/// How many blocks of operators new, and bytes mapped, have not been given back.
std::int64_t allocations_held();

/// True when this allocation is the one to fail.
bool is_to_fail();
/// So many allocations succeeded, or were given back where it is negative.
void note_allocations(std::int64_t count);

}  // namespace palimpsest
