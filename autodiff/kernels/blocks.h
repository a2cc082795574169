#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

/// How the elementwise kernels of a level walk their arrays.
namespace palimpsest::PALIMPSEST_LEVEL {

/// A cache line of numbers.
template <class T>
inline constexpr std::int64_t block_size = 64 / std::int64_t{sizeof(T)};
template <class T>
using Block = Eigen::Array<T, block_size<T>, 1>;

/// An operand of as many numbers as the result, read block by block.
template <class T>
class Elements {
 public:
  explicit Elements(const T* data) : data_(data) {}
  Eigen::Map<const Block<T>> block(std::int64_t first) const {
    return Eigen::Map<const Block<T>>(data_ + first);
  }
  /// The last of n numbers, as many as a block has: filled up where there are fewer.
  const T* last(std::int64_t n) {
    if (n >= block_size<T>) return data_ + n - block_size<T>;
    filled_up_.setConstant(data_[0]);
    std::copy_n(data_, n, filled_up_.data());
    return filled_up_.data();
  }

 private:
  const T* data_;
  Block<T> filled_up_;
};

/// An operand that is one number.
template <class T>
class Number {
 public:
  explicit Number(const T* data) : block_(Block<T>::Constant(*data)) {}
  Eigen::Map<const Block<T>> block(std::int64_t) const {
    return Eigen::Map<const Block<T>>(block_.data());
  }
  const T* last(std::int64_t) const { return block_.data(); }

 private:
  Block<T> block_;
};

/// y = f(x...) for n elements. What is left behind whole blocks is part of a block too, so that
/// every element goes through the same instructions: its bits depend on its operands, not on its
/// place or on alignment.
template <class T, class F, class... X>
void in_blocks(T* y, std::int64_t n, F f, X... x) {
  const std::int64_t whole = n / block_size<T> * block_size<T>;
  Block<T> last;
  // It shares elements with the block before: computed first, since y may be one of x.
  if (whole < n) last = f(Eigen::Map<const Block<T>>(x.last(n))...);
  for (std::int64_t i = 0; i < whole; i += block_size<T>) {
    Eigen::Map<Block<T>>(y + i) = f(x.block(i)...);
  }
  if (whole == n) return;
  if (n > block_size<T>) {
    Eigen::Map<Block<T>>(y + n - block_size<T>) = last;
  } else {
    std::copy_n(last.data(), n, y);
  }
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
