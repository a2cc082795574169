#include "strategy/loops/loop_memory.h"

#include <cstring>

#include "autodiff/execute.h"

namespace palimpsest {

Addresses addresses_of(std::span<const Operand> operands) {
  Addresses addresses;
  for (const Operand& operand : operands) addresses.push_back(operand.data);
  return addresses;
}

std::span<std::byte> memory_of(const Operand& operand) {
  return {operand.data, static_cast<std::size_t>(operand.type.bytes())};
}

StateBlock::StateBlock(std::span<const ValueType> types) {
  for (const ValueType& type : types) {
    offsets.push_back(bytes);
    sizes.push_back(type.bytes());
    bytes += aligned(type.bytes());
  }
}

Addresses StateBlock::at(std::byte* begin) const {
  Addresses addresses;
  at(begin, addresses);
  return addresses;
}

void StateBlock::copy(const Addresses& from, const Addresses& to) const {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (from[i] != to[i]) std::memcpy(to[i], from[i], static_cast<std::size_t>(sizes[i]));
  }
}

std::span<std::byte> Cut::take(Bytes bytes) {
  const auto size = static_cast<std::size_t>(aligned(bytes));
  internal_check(size <= left_.size(), "a loop needs more workspace than it asked for");
  const std::span<std::byte> piece = left_.first(size);
  left_ = left_.subspan(size);
  return piece;
}

Parts::Parts(std::span<const Operand> whole, std::uint32_t steps) : bases_(addresses_of(whole)) {
  for (const Operand& operand : whole) {
    sizes_.push_back(steps > 0 ? operand.type.bytes() / steps : 0);
  }
}

std::vector<std::span<std::byte>> Parts::range(std::uint64_t first, std::uint64_t last) const {
  std::vector<std::span<std::byte>> spans;
  for (std::size_t i = 0; i < bases_.size(); ++i) {
    const auto size = static_cast<std::size_t>(sizes_[i]);
    spans.emplace_back(bases_[i] + size * first, size * (last - first));
  }
  return spans;
}

std::vector<std::span<std::byte>> spans_of(const Addresses& addresses,
                                           std::span<const Bytes> sizes) {
  std::vector<std::span<std::byte>> spans;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    spans.emplace_back(addresses[i], static_cast<std::size_t>(sizes[i]));
  }
  return spans;
}

void fill_with_nothing(std::byte* data, const ValueType& type) {
  const std::int64_t size = size_of(type.dtype);
  const std::int64_t elements = type.shape.elements();
  std::memset(data, 0, static_cast<std::size_t>(elements * size));
  for (std::int64_t i = 1; i <= elements; ++i) data[i * size - 1] = std::byte{0x80};
}

}  // namespace palimpsest
