#pragma once

#include <cstddef>
#include <cstdint>

namespace palimpsest {

/// What a program has from the system as its allocator sees it. This test program has operators
/// new and mmap of its own, which count; the library is told nothing.
///
/// Blocks of the heap that are requested from here on in exactly `size` bytes are counted, others
/// are not.
void watch_size(std::size_t size);
/// The size that was requested last, of those between two bounds.
void bound_requests(std::size_t least, std::size_t most);
std::size_t last_request();
/// Blocks of the watched size that are there now.
std::int64_t watched_blocks();
/// Bytes that are mapped now, but for those of the C library.
std::int64_t mapped_bytes();

}  // namespace palimpsest
