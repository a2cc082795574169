#include "strategy/loops/loop_memory.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "autodiff/execute.h"
#include "autodiff/parallel.h"

namespace palimpsest {

Addresses addresses_of(std::span<const Operand> operands) {
  Addresses addresses;
  for (const Operand& operand : operands) addresses.push_back(operand.data);
  return addresses;
}

std::span<std::byte> memory_of(const Operand& operand) {
  return {operand.data, static_cast<std::size_t>(operand.type.bytes())};
}

namespace {

/// A tensor lies on a cache line of its own unless more than an eighth would be padding. Then its
/// address is a multiple of a power of two that divides its size, and so of its elements' size.
Bytes alignment_in_block(Bytes size) {
  if (size == 0) return 1;
  const bool has_own_line = 8 * (aligned(size) - size) <= size;
  return has_own_line ? Bytes{buffer_alignment} : size & -size;
}

}  // namespace

StateBlock::StateBlock(std::span<const ValueType> types) : offsets(types.size()) {
  for (const ValueType& type : types) sizes.push_back(type.bytes());
  std::vector<std::size_t> order(types.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto alignment = [&](std::size_t i) { return alignment_in_block(sizes[i]); };
  std::ranges::stable_sort(order, std::greater{}, alignment);
  for (const std::size_t i : order) {
    offsets[i] = round_up(stride, alignment(i));
    stride = offsets[i] + sizes[i];
  }
  if (!order.empty()) stride = round_up(stride, alignment(order.front()));
  bytes = aligned(stride);
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
  visit(type.dtype, [&]<class T>(T) {
    std::fill_n(reinterpret_cast<T*>(data), type.shape.elements(), convert_element<T>(-0.0));
  });
}

}  // namespace palimpsest
