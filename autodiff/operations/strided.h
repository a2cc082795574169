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

/// Copies a box, `from` and `to` pointing at its first element in either tensor, in parallel.
/// Elements take 1, 2, 4 or 8 bytes. No element is written twice.
void copy_strided(const StridedBox& box, const std::byte* from, std::byte* to,
                  std::int64_t element_bytes);

/// Writes `value`, converted to y's dtype, to the box of y that starts at element `offset` and has
/// y's strides.
void fill_box(const Operand& y, std::int64_t offset, const Shape& sizes, double value);

}  // namespace palimpsest
