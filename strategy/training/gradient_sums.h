#pragma once

#include <cstddef>
#include <functional>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

// Adding, normalising and clipping gradients, in parallel chunks. No element or sum depends on how
// chunks are distributed, so the bits are equal for any number of threads.

/// Bytes of the sum of gradients of a type, plus those of its rounded copy.
Bytes sum_bytes(const ValueType& type);

/// sum ← gradient, converted. Shapes are equal.
void begin_sum(const Tensor& sum, const Tensor& gradient);
/// sum ← sum + weight·gradient, computed in f64 and rounded once; then divides as `divide`. Shapes
/// are equal. The dtype of the sum is the compute dtype of the gradient.
void add_to_sum(const Tensor& sum, const Tensor& gradient, double weight, double divisor = 1);
/// x ← x / divisor, computed in f64 and rounded once; f64 or f32.
void divide(const Tensor& x, double divisor);
/// The sum of squares of all elements times `scale`, in f64. The order depends only on their
/// number. For f64 or f32.
double sum_of_squares(const Tensor& x, double scale = 1);
/// The 2-norm of `count` tensors together, also where squares overflow. `tensor(i)` returns the
/// i-th one, in f64 or f32. It is called again if squares overflow or vanish, so that one tensor at
/// a time is held.
double joint_norm(std::size_t count, const std::function<Tensor(std::size_t)>& tensor);

}  // namespace palimpsest
