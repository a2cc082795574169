#pragma once

#include <boost/container/small_vector.hpp>
#include <span>
#include <vector>

#include "autodiff/operation.h"

namespace palimpsest {

/// Something for each of the few tensors of a step. Up to eight take no memory from the heap.
template <class T>
struct Few : boost::container::small_vector<T, 8> {
  using boost::container::small_vector<T, 8>::small_vector;
  // Its iterators are not contiguous ones for the standard library.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::span<const T>() const { return {this->data(), this->size()}; }
};
/// The addresses of several tensors.
using Addresses = Few<std::byte*>;

Addresses addresses_of(std::span<const Operand> operands);
std::span<std::byte> memory_of(const Operand& operand);

/// The layout of tensors in a block of memory that holds all of them. Blocks may lie in a row,
/// `stride` bytes apart, where a state of a few numbers takes little more than these.
struct StateBlock {
  StateBlock() = default;
  explicit StateBlock(std::span<const ValueType> types);

  /// Their addresses in a block at `begin`, a multiple of 64 plus any number of strides.
  Addresses at(std::byte* begin) const;
  /// Likewise, in `to`, which keeps its memory.
  void at(std::byte* begin, Addresses& to) const {
    if (to.size() != offsets.size()) to.resize(offsets.size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = begin + offsets[i];
  }
  void copy(const Addresses& from, const Addresses& to) const;

  std::vector<Bytes> offsets;
  std::vector<Bytes> sizes;
  Bytes bytes = 0;   // a multiple of 64
  Bytes stride = 0;  // at most `bytes`
};

/// Hands out consecutive pieces of a memory range.
class Cut {
 public:
  explicit Cut(std::span<std::byte> memory) : left_(memory) {}

  std::span<std::byte> take(Bytes bytes);
  Addresses take(const StateBlock& block) { return block.at(take(block.bytes).data()); }
  /// The memory that has not been taken.
  std::span<std::byte> left() const { return left_; }

 private:
  std::span<std::byte> left_;
};

/// Tensors with one element along the first axis for every step of a loop.
class Parts {
 public:
  Parts() = default;
  Parts(std::span<const Operand> whole, std::uint32_t steps);

  void append(std::uint32_t step, Addresses& to) const {
    for_each(step, [&](std::byte* each) { to.push_back(each); });
  }
  std::size_t size() const { return bases_.size(); }
  /// Calls f(address) for each of a step.
  template <class F>
  void for_each(std::uint32_t step, const F& f) const {
    for (std::size_t i = 0; i < bases_.size(); ++i) f(bases_[i] + sizes_[i] * step);
  }
  /// The bytes of the steps from `first` to before `last`.
  std::vector<std::span<std::byte>> range(std::uint64_t first, std::uint64_t last) const;

 private:
  Addresses bases_;
  Few<Bytes> sizes_;
};

/// The bytes of tensors of so many bytes.
std::vector<std::span<std::byte>> spans_of(const Addresses& addresses,
                                           std::span<const Bytes> sizes);

/// Fills with −0, the neutral element of addition: −0 + 0 is 0.
void fill_with_nothing(std::byte* data, const ValueType& type);

}  // namespace palimpsest
