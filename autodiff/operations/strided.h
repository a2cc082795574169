#pragma once

#include <cstddef>
#include <cstdint>

#include "autodiff/operation.h"
#include "autodiff/shape.h"

namespace palimpsest {

/// A box of elements that lies in two tensors at once: its sizes and, for each, how many elements
/// apart neighbours along an axis lie. A stride may be negative; 0 reads the same element again.
struct StridedBox {
  Shape sizes;
  Strides from{};
  Strides to{};
};

/// An axis as the index into its stride.
constexpr std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

/// Copies a box, `from` and `to` pointing at its first element in either tensor, in parallel.
/// Elements take 1, 2, 4 or 8 bytes. No element is written twice.
void copy_strided(const StridedBox& box, const std::byte* from, std::byte* to,
                  std::int64_t element_bytes);

/// The elements of a tensor in the order of an output that takes each from one place.
class Gather {
 public:
  /// `sizes` is the shape of the output.
  Gather(const Shape& sizes, const Access& access);

  /// Elements, in the tensor, from the first element taken to the tensor's first.
  std::int64_t offset() const { return offset_; }
  /// True when element i lies `step()`·i behind the first: 1 in a row, 0 all the same one.
  bool is_row() const { return box_.sizes.rank() == 1 && (step() == 0 || step() == 1); }
  std::int64_t step() const { return box_.from[0]; }
  /// True when it costs little more to take the elements so than from memory in order.
  bool is_smooth() const;
  /// Copies elements [begin, begin + n); `from` points at the first element of the tensor.
  void copy(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t n,
            std::int64_t element_bytes) const;

 private:
  StridedBox box_;
  std::int64_t offset_;
};

/// Writes `value`, converted to y's dtype, to the box of y that starts at element `offset` and has
/// y's strides.
void fill_box(const Operand& y, std::int64_t offset, const Shape& sizes, double value);

}  // namespace palimpsest
