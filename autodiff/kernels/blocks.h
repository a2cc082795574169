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

/// An operand read block by block; one number where the step is 0.
template <class T>
class Source {
 public:
  Source(const T* data, std::int64_t step) : data_(data), step_(step) {
    if (step == 0) padded_.setConstant(*data);
  }
  Eigen::Map<const Block<T>> block(std::int64_t first, std::int64_t count) {
    const T* data = data_ + first;
    if (step_ == 0 || count < block_size<T>) {
      data = padded_.data();
      if (step_ != 0) {
        padded_.setConstant(data_[first]);
        std::copy_n(data_ + first, count, padded_.data());
      }
    }
    return Eigen::Map<const Block<T>>(data);
  }

 private:
  const T* data_;
  std::int64_t step_;
  Block<T> padded_;
};

/// y = f(x...) for n elements. The last block is filled up, so that every element goes through the
/// same instructions: its bits depend on its operands, not on its place or on alignment.
template <class T, class F, class... X>
void in_blocks(T* y, std::int64_t n, F f, Source<X>... x) {
  Block<T> rest;
  for (std::int64_t i = 0; i < n; i += block_size<T>) {
    const std::int64_t count = std::min(block_size<T>, n - i);
    const bool whole = count == block_size<T>;
    Eigen::Map<Block<T>>(whole ? y + i : rest.data()) = f(x.block(i, count)...);
    if (!whole) std::copy_n(rest.data(), count, y + i);
  }
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
