#include "examples/support/drawn_digits.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace palimpsest;

namespace examples {
namespace {

constexpr std::int64_t image_side = 28;

/// A bar of a display, from (row, column), in units of its grid.
struct Segment {
  int row, column, height, width;
};
constexpr Segment segments[7] = {{0, 0, 3, 10}, {0, 8, 9, 3}, {8, 8, 9, 3}, {14, 0, 3, 10},
                                 {8, 0, 9, 3},  {0, 0, 9, 3}, {7, 0, 3, 10}};
/// Bit i: segment i is lit.
constexpr unsigned lit[10] = {0x3f, 0x06, 0x5b, 0x4f, 0x66, 0x6d, 0x7d, 0x07, 0x7f, 0x6f};

}  // namespace

LabelledImages drawn_digits(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  LabelledImages drawn{Tensor::uniform({count, 1, image_side, image_side}, seed, 0, 0.3),
                       Tensor::zeros({count}, DType::i32)};
  const std::span<float> pixels = drawn.images.data<float>();
  for (float& pixel : pixels) pixel = std::round(pixel * 255) / 255;
  for (std::int64_t image = 0; image < count; ++image) {
    const auto digit = static_cast<std::int32_t>(random() % 10);
    drawn.labels.data<std::int32_t>()[static_cast<std::size_t>(image)] = digit;
    const auto top = static_cast<std::int64_t>(random() % 9);
    const auto left = static_cast<std::int64_t>(random() % 14);
    for (std::size_t i = 0; i < 7; ++i) {
      if ((lit[digit] >> i & 1U) == 0) continue;
      const auto& [row, column, height, width] = segments[i];
      for (std::int64_t r = 0; r < height; ++r) {
        for (std::int64_t c = 0; c < width; ++c) {
          const std::int64_t at =
              (image * image_side + top + row + r) * image_side + left + column + c;
          float& pixel = pixels[static_cast<std::size_t>(at)];
          pixel = std::min(1.0F, pixel + 179.0F / 255);
        }
      }
    }
  }
  return drawn;
}

}  // namespace examples
