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
  /// The last block, filled up.
  const Block<T>& rest(std::int64_t first, std::int64_t count) {
    rest_.setConstant(data_[first]);
    std::copy_n(data_ + first, count, rest_.data());
    return rest_;
  }

 private:
  const T* data_;
  Block<T> rest_;
};

/// An operand that is one number.
template <class T>
class Number {
 public:
  explicit Number(const T* data) : block_(Block<T>::Constant(*data)) {}
  Eigen::Map<const Block<T>> block(std::int64_t) const {
    return Eigen::Map<const Block<T>>(block_.data());
  }
  const Block<T>& rest(std::int64_t, std::int64_t) const { return block_; }

 private:
  Block<T> block_;
};

/// y = f(x...) for n elements. The last block is filled up, so that every element goes through the
/// same instructions: its bits depend on its operands, not on its place or on alignment.
template <class T, class F, class... X>
void in_blocks(T* y, std::int64_t n, F f, X... x) {
  const std::int64_t whole = n / block_size<T> * block_size<T>;
  for (std::int64_t i = 0; i < whole; i += block_size<T>) {
    Eigen::Map<Block<T>>(y + i) = f(x.block(i)...);
  }
  if (whole == n) return;
  Block<T> rest;
  rest = f(Eigen::Map<const Block<T>>(x.rest(whole, n - whole).data())...);
  std::copy_n(rest.data(), n - whole, y + whole);
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
