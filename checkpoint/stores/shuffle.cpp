#include "checkpoint/stores/shuffle.h"

#include <algorithm>

namespace palimpsest {
namespace {

/// Calls `move` with the index of each byte in the row of numbers and in the shuffled row. The
/// width is a constant so that compilers can vectorise the loops.
template <std::size_t width, class Move>
void each(std::size_t count, Move move) {
  for (std::size_t byte = 0; byte < width; ++byte) {
    for (std::size_t i = 0; i < count; ++i) move(i * width + byte, byte * count + i);
  }
}

template <class Move>
void each(std::size_t width, std::size_t bytes, Move move) {
  if (width == 2) return each<2>(bytes / 2, move);
  if (width == 4) return each<4>(bytes / 4, move);
  if (width == 8) return each<8>(bytes / 8, move);
  each<1>(bytes, move);
}

void copy_rest(std::span<const std::byte> from, std::size_t width, std::span<std::byte> to) {
  const std::size_t rest = from.size() % width;
  std::copy_n(from.end() - static_cast<std::ptrdiff_t>(rest), rest,
              to.end() - static_cast<std::ptrdiff_t>(rest));
}

}  // namespace

void shuffle(std::span<const std::byte> from, std::size_t width, std::span<std::byte> to) {
  const std::byte* source = from.data();
  std::byte* target = to.data();
  each(width, from.size(),
       [=](std::size_t plain, std::size_t shuffled) { target[shuffled] = source[plain]; });
  copy_rest(from, width, to);
}

void unshuffle(std::span<const std::byte> from, std::size_t width, std::span<std::byte> to) {
  const std::byte* source = from.data();
  std::byte* target = to.data();
  each(width, from.size(),
       [=](std::size_t plain, std::size_t shuffled) { target[plain] = source[shuffled]; });
  copy_rest(from, width, to);
}

}  // namespace palimpsest
