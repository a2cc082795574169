#pragma once

#include <cstddef>
#include <cstdint>

namespace palimpsest {

/// Measures the memory that a program has from the system, as its allocator sees it. The test
/// program replaces malloc, operators new and mmap by counting ones; the library does not take part
/// in this.
///
/// Counts heap blocks that are requested from now on with exactly `size` bytes, and no others.
void watch_size(std::size_t size);
/// The last requested size between two bounds.
void bound_requests(std::size_t least, std::size_t most);
std::size_t last_request();
/// The number of live blocks of the watched size.
std::int64_t watched_blocks();
/// Bytes mapped now, excluding those of the C library.
std::int64_t mapped_bytes();

/// Bytes of all live heap blocks, with what the C library adds to each, and of mappings.
std::int64_t bytes_taken();
/// The most of these at once since `restart_most_taken`.
std::int64_t most_taken();
void restart_most_taken();

}  // namespace palimpsest
