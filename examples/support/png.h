#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace examples {

using Colour = std::array<std::uint8_t, 3>;  ///< red, green, blue

/// A PNG file of `rows` × `columns` pixels. Each pixel is an index into the palette, which has at
/// most 256 colours.
std::string png(std::span<const std::uint8_t> pixels, std::size_t rows, std::size_t columns,
                std::span<const Colour> palette);

/// Base64 encoding of the bytes, as in data URIs.
std::string base64(const std::string& bytes);

}  // namespace examples
