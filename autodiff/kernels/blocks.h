#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

/// How the elementwise kernels of a level walk their arrays.
namespace palimpsest::PALIMPSEST_LEVEL {

/// A cache line of numbers.
template <class T>
inline constexpr std::int64_t block_size = 64 / std::int64_t{sizeof(T)};

template <class T>
struct alignas(64) Block {
  T numbers[block_size<T>];
};

/// An operand that a loop reads: as many numbers as it makes, or one (step 0).
template <class T>
struct BlockOperand {
  const T* data;
  std::int64_t step;
};

inline constexpr std::size_t most_operands = 4;

/// Computes n elements of y, whole blocks. `from` points at the elements of each operand, or at a
/// block of equal numbers.
template <class T>
using BlockLoop = void (*)(T* y, std::int64_t n, const T* const* from, const double* parameters);

/// `loop` over n elements. The elements after the last whole block are computed as part of a block
/// too. So every element goes through the same instructions, and its bits depend on its operands
/// alone, not on its place or on alignment.
template <class T>
[[gnu::noinline]] void in_blocks(BlockLoop<T> loop, T* y, std::int64_t n,
                                 std::initializer_list<BlockOperand<T>> operands,
                                 const double* parameters = nullptr) {
  if (n == 0) return;
  constexpr std::int64_t size = block_size<T>;
  const std::int64_t whole = n / size * size;
  Block<T> filled[most_operands];
  const T* from[most_operands];
  const T* last_from[most_operands];
  std::size_t k = 0;
  for (const BlockOperand<T>& operand : operands) {
    from[k] = operand.data;
    if (operand.step == 0 || n == 1) {
      std::fill_n(filled[k].numbers, size, *operand.data);
      from[k] = last_from[k] = filled[k].numbers;
    } else if (n < size) {
      std::fill_n(std::copy_n(operand.data, n, filled[k].numbers), size - n, *operand.data);
      last_from[k] = filled[k].numbers;
    } else {
      last_from[k] = operand.data + n - size;
    }
    ++k;
  }
  if (whole == n) return loop(y, n, from, parameters);
  // It shares elements with the block before: computed first, since y may be what is read.
  Block<T> last;
  loop(last.numbers, size, last_from, parameters);
  if (whole == 0) {
    std::copy_n(last.numbers, n, y);
    return;
  }
  loop(y, whole, from, parameters);
  std::copy_n(last.numbers, size, y + n - size);
}

/// Whether an operand of a loop is elements or one number, which stays in registers.
enum class Reads : bool { number, elements };

/// A `BlockLoop` of `F`, whose `compute(parameters, y, from...)` computes a block.
template <class T, class F, Reads... reads>
void block_loop(T* y, std::int64_t n, const T* const* from, const double* parameters) {
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    // Copies, since y could be any of these as far as the compiler knows.
    const T* const data[] = {from[k]...};
    const Block<T> held[] = {reads == Reads::number ? *reinterpret_cast<const Block<T>*>(from[k])
                                                    : Block<T>{}...};
    for (std::int64_t i = 0; i < n; i += block_size<T>) {
      F::compute(parameters, y + i, (reads == Reads::number ? held[k].numbers : data[k] + i)...);
    }
  }(std::make_index_sequence<sizeof...(reads)>());
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
