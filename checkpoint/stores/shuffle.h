#pragma once

#include <cstddef>
#include <span>

namespace palimpsest {

/// Groups similar bytes of numbers of `width` bytes, so that they compress better. Fills `to` with
/// the first byte of each number, then with the second of each, and so on. A remainder after the
/// last whole number stays at the end.
void shuffle(std::span<const std::byte> from, std::size_t width, std::span<std::byte> to);

/// Undoes `shuffle`.
void unshuffle(std::span<const std::byte> from, std::size_t width, std::span<std::byte> to);

}  // namespace palimpsest
