#pragma once

#include <cstddef>
#include <span>

namespace palimpsest {

/// Brings together what is alike in numbers of `width` bytes, so that it compresses: fills `to`
/// with the first byte of each, then with the second of each and so on. What is left over after the
/// last whole number stays at the end.
void shuffle(std::span<const std::byte> from, std::size_t width, std::span<std::byte> to);

/// Undoes `shuffle`.
void unshuffle(std::span<const std::byte> from, std::size_t width, std::span<std::byte> to);

}  // namespace palimpsest
