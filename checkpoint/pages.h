#pragma once

#include <cstddef>

#include "autodiff/bytes.h"

namespace palimpsest {

Bytes page_size();
/// `bytes` rounded up to whole pages, at least one.
Bytes whole_pages(Bytes bytes);

/// Fresh pages for `bytes`, a multiple of the page size; null when the system has none.
std::byte* map_pages(Bytes bytes) noexcept;
/// Gives pages back: a whole mapping or part of one.
void unmap_pages(std::byte* pages, Bytes bytes) noexcept;
/// Extends a piece by fresh pages. It may move. Returns null, with nothing done, when the system
/// refuses, as it may when the piece consists of several mappings.
std::byte* grow_pages(std::byte* pages, Bytes bytes, Bytes larger) noexcept;

}  // namespace palimpsest
