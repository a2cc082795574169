#pragma once

#include <cstddef>

#include "autodiff/bytes.h"

namespace palimpsest {

Bytes page_size();
/// `bytes` rounded up to whole pages, of which there is at least one.
Bytes whole_pages(Bytes bytes);

/// Fresh pages for `bytes`, a multiple of a page; null when the system has none.
std::byte* map_pages(Bytes bytes) noexcept;
/// Gives pages back, all of a mapping or a part.
void unmap_pages(std::byte* pages, Bytes bytes) noexcept;
/// Makes a piece larger by fresh pages; what it had may lie elsewhere then. Null, and nothing done,
/// when the system refuses, as it may where the piece was several mappings.
std::byte* grow_pages(std::byte* pages, Bytes bytes, Bytes larger) noexcept;

}  // namespace palimpsest
