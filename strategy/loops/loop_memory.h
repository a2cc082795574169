#pragma once

#include <span>
#include <vector>

#include "autodiff/operation.h"

namespace palimpsest {

/// Where several tensors lie.
using Addresses = std::vector<std::byte*>;

Addresses addresses_of(std::span<const Operand> operands);
std::span<std::byte> memory_of(const Operand& operand);

/// How tensors lie in a block of memory that holds all of them.
struct StateBlock {
  StateBlock() = default;
  explicit StateBlock(std::span<const ValueType> types);

  /// Where they lie in a block at `begin`.
  Addresses at(std::byte* begin) const;
  void copy(const Addresses& from, const Addresses& to) const;

  std::vector<Bytes> offsets;  // multiples of 64
  std::vector<Bytes> sizes;
  Bytes bytes = 0;
};

/// Memory that is handed out piece by piece.
class Cut {
 public:
  explicit Cut(std::span<std::byte> memory) : left_(memory) {}

  std::span<std::byte> take(Bytes bytes);
  Addresses take(const StateBlock& block) { return block.at(take(block.bytes).data()); }

 private:
  std::span<std::byte> left_;
};

/// Tensors of which every step of a loop has one element along the first axis.
class Parts {
 public:
  Parts() = default;
  Parts(std::span<const Operand> whole, std::uint32_t steps);

  void append(std::uint32_t step, Addresses& to) const {
    for (std::size_t i = 0; i < bases_.size(); ++i) to.push_back(bases_[i] + sizes_[i] * step);
  }

 private:
  Addresses bases_;
  std::vector<Bytes> sizes_;
};

/// Fills with a zero that changes nothing it is added to: −0, as −0 + 0 is 0.
void fill_with_nothing(std::byte* data, const ValueType& type);

}  // namespace palimpsest
