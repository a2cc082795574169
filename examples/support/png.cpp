#include "examples/support/png.h"

#include <zlib.h>

namespace examples {
namespace {

/// The number in 32 bits, most significant byte first.
std::string big_endian(std::size_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

/// A chunk of the file: its length, type and data, and a checksum of type and data.
std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto bytes = reinterpret_cast<const Bytef*>(body.data());
  return big_endian(data.size()) + body +
         big_endian(crc32(0, bytes, static_cast<uInt>(body.size())));
}

std::string compressed(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string result(size, '\0');
  compress(reinterpret_cast<Bytef*>(result.data()), &size,
           reinterpret_cast<const Bytef*>(text.data()), text.size());
  result.resize(size);
  return result;
}

}  // namespace

std::string png(std::span<const std::uint8_t> pixels, std::size_t rows, std::size_t columns,
                std::span<const Colour> palette) {
  std::string colours;
  for (const Colour& colour : palette) colours.append(colour.begin(), colour.end());
  std::string lines;
  for (std::size_t row = 0; row < rows; ++row) {
    lines += '\0';  // filter type 0: the line is stored as it is
    lines.append(pixels.begin() + static_cast<std::ptrdiff_t>(row * columns),
                 pixels.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns));
  }
  // 8 bits per pixel (8), palette (3), the only compression and filter methods (0), no interlace
  // (0).
  const std::string header =
      big_endian(columns) + big_endian(rows) + std::string("\x08\x03\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("PLTE", colours) +
         chunk("IDAT", compressed(lines)) + chunk("IEND", "");
}

std::string base64(const std::string& bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = i; k < i + 3; ++k) {
      group = group << 8 | (k < bytes.size() ? static_cast<std::uint8_t>(bytes[k]) : 0u);
    }
    for (int digit = 3; digit >= 0; --digit) text += digits[group >> 6 * digit & 63];
  }
  for (std::size_t k = 0; k < (3 - bytes.size() % 3) % 3; ++k) text[text.size() - 1 - k] = '=';
  return text;
}

}  // namespace examples
