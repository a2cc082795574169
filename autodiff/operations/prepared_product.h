#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "autodiff/operation.h"

namespace palimpsest {

/// A small product of two matrices, prepared for runs that differ in addresses only. Has the bits
/// of `matmul`, and of adding its result to a third matrix. Immutable.
class PreparedProduct {
 public:
  /// Addresses of the operands a and b, of a matrix to be added or null, of the result, and of the
  /// workspace of `matmul`.
  using Run = void (*)(const void* prepared, const std::byte* a, const std::byte* b,
                       const std::byte* addend, std::byte* y, std::byte* workspace);

  virtual ~PreparedProduct() = default;
  /// The function to call, with this `PreparedProduct` as `prepared`.
  virtual Run run() const = 0;
};

/// Null unless `operation` is `matmul` with two f32 or f64 matrices, so small that one thread
/// multiplies them. Only types of the operands are read.
std::shared_ptr<const PreparedProduct> prepared_product(const Operation& operation,
                                                        const Attributes& attributes,
                                                        std::span<const Operand> inputs,
                                                        const Operand& output);

}  // namespace palimpsest
