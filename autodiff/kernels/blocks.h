#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

/// Loops of the elementwise kernels of one level.
namespace palimpsest::PALIMPSEST_LEVEL {

/// Elements in a cache line.
template <class T>
inline constexpr std::int64_t block_size = 64 / std::int64_t{sizeof(T)};

template <class T>
struct alignas(64) Block {
  T numbers[block_size<T>];
};

template <class T>
Block<T> block_of(T number) {
  Block<T> block;
  std::fill_n(block.numbers, block_size<T>, number);
  return block;
}

/// An input of a loop: one element per output element, or a single number (step 0).
template <class T>
struct BlockOperand {
  const T* data;
  std::int64_t step;
};

/// Computes n elements of y; n is at least a block.
template <class T>
using BlockLoop = void (*)(T* y, std::int64_t n, const BlockOperand<T>* operands,
                           const double* parameters);

/// Copies less than a block. A call of memcpy would take as long as a loop over few elements.
template <class T>
void copy_few(T* to, const T* from, std::int64_t n) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
  // Copies the first and the last bytes, which may overlap.
  const auto in_two = [&]<std::size_t size>(std::integral_constant<std::size_t, size>) {
    std::byte first[size];
    std::byte last[size];
    std::memcpy(first, from, size);
    std::memcpy(last, reinterpret_cast<const std::byte*>(from) + bytes - size, size);
    std::memcpy(to, first, size);
    std::memcpy(reinterpret_cast<std::byte*>(to) + bytes - size, last, size);
  };
  if (bytes >= 32) return in_two(std::integral_constant<std::size_t, 32>());
  if (bytes >= 16) return in_two(std::integral_constant<std::size_t, 16>());
  if (bytes >= 8) return in_two(std::integral_constant<std::size_t, 8>());
  if constexpr (sizeof(T) == 4) in_two(std::integral_constant<std::size_t, 4>());
}

/// Runs `loop` for less than a block of elements by computing a whole block.
template <class T, std::size_t count>
[[gnu::noinline]] void in_one_block(BlockLoop<T> loop, T* y, std::int64_t n,
                                    const BlockOperand<T> (&operands)[count],
                                    const double* parameters) {
  if (n == 0) return;
  constexpr std::int64_t size = block_size<T>;
  Block<T> filled[count];
  BlockOperand<T> whole[count];
  for (std::size_t k = 0; k < count; ++k) {
    whole[k] = operands[k];
    if (operands[k].step == 0) continue;
    filled[k] = block_of(*operands[k].data);
    if (n > 1) copy_few(filled[k].numbers, operands[k].data, n);
    whole[k].data = filled[k].numbers;
  }
  Block<T> made;
  loop(made.numbers, size, whole, parameters);
  copy_few(y, made.numbers, n);
}

/// Runs `loop` for n elements. It must read operands of step 0 as single numbers.
template <class T, std::size_t count>
void in_blocks(BlockLoop<T> loop, T* y, std::int64_t n, const BlockOperand<T> (&operands)[count],
               const double* parameters = nullptr) {
  if (n >= block_size<T>) return loop(y, n, operands, parameters);
  in_one_block(loop, y, n, operands, parameters);
}

/// Whether an operand of a loop is an array, or a single number that stays in registers.
enum class Reads : bool { number, elements };

/// A `BlockLoop` of `F`, whose `compute(parameters, y, from...)` computes a block. The elements
/// after the last whole block are computed as part of a block, too. Every element thus goes through
/// the same instructions: its bits depend on its operands only, not on its position or alignment.
template <class T, class F, Reads... reads>
[[gnu::noinline]] void block_loop(T* y, std::int64_t n, const BlockOperand<T>* operands,
                                  const double* parameters) {
  constexpr std::int64_t size = block_size<T>;
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    // Copies, because the compiler must assume that y aliases them.
    const T* const data[] = {operands[k].data...};
    const Block<T> held[] = {reads == Reads::number ? block_of(*data[k]) : Block<T>{}...};
    const std::int64_t whole = n / size * size;
    Block<T> last;
    // The last block overlaps the one before. It is computed first, since y may alias an input.
    if (whole != n) {
      const BlockOperand<T> from[] = {
          {reads == Reads::number ? data[k] : data[k] + n - size, operands[k].step}...};
      block_loop<T, F, reads...>(last.numbers, size, from, parameters);
    }
    for (std::int64_t i = 0; i < whole; i += size) {
      F::compute(parameters, y + i, (reads == Reads::number ? held[k].numbers : data[k] + i)...);
    }
    if (whole != n) std::copy_n(last.numbers, size, y + n - size);
  }(std::make_index_sequence<sizeof...(reads)>());
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
