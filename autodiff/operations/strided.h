#pragma once

#include <cstddef>
#include <cstdint>

#include "autodiff/operation.h"
#include "autodiff/shape.h"

namespace palimpsest {

/// A box of elements in two tensors: its sizes, and its strides in each tensor. A stride may be
/// negative; 0 repeats the same element.
struct StridedBox {
  Shape sizes;
  Strides from{};
  Strides to{};

  bool operator==(const StridedBox&) const = default;
};

/// Converts an axis to an index into strides.
constexpr std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

/// Copies a box in parallel; `from` and `to` point to its first element in each tensor. Elements
/// have 1, 2, 4 or 8 bytes. No element may be written twice.
void copy_strided(const StridedBox& box, const std::byte* from, std::byte* to,
                  std::int64_t element_bytes);

/// Reads the elements of a tensor in output order, for an output that takes each from one position.
class Gather {
 public:
  /// `sizes` is the shape of the output.
  Gather(const Shape& sizes, const Access& access);

  /// The positions that are read, in output order, without axes of size 1.
  const StridedBox& box() const { return box_; }
  /// Offset of the first element read.
  std::int64_t offset() const { return offset_; }
  /// True when element i is at `step()`·i from the first: contiguous for 1, a repeated element for
  /// 0.
  bool is_row() const { return box_.sizes.rank() == 1 && (step() == 0 || step() == 1); }
  std::int64_t step() const { return box_.from[0]; }
  /// True when elements of the innermost axis are contiguous or repeated, and that axis has at
  /// least `shortest` elements.
  bool has_rows(std::int64_t shortest) const;
  /// Copies elements [begin, begin + n); `from` points to the first element of the tensor.
  void copy(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t n,
            std::int64_t element_bytes) const;
  bool operator==(const Gather&) const = default;

 private:
  StridedBox box_;
  std::int64_t offset_;
};

/// Writes `value`, converted to y's dtype, to a box of y that starts at element `offset` and has
/// y's strides.
void fill_box(const Operand& y, std::int64_t offset, const Shape& sizes, double value);

}  // namespace palimpsest
