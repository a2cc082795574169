#pragma once

#include "autodiff/tensor.h"

namespace palimpsest {

// Arithmetic on gradients as they are added, normalised and clipped, in parallel chunks. No element
// or sum depends on how chunks are shared out: the same bits at any number of threads.

/// Bytes of the sum of gradients of a type, and of what that is rounded to.
Bytes sum_bytes(const ValueType& type);

/// sum ← gradient, converted. Shapes are equal.
void begin_sum(const Tensor& sum, const Tensor& gradient);
/// sum ← sum + weight·gradient, computed in f64 and rounded once, then as by `divide`. Shapes are
/// equal, and the dtype of the sum is the compute dtype of the gradient.
void add_to_sum(const Tensor& sum, const Tensor& gradient, double weight, double divisor = 1);
/// x ← x / divisor, computed in f64 and rounded once; f64 or f32.
void divide(const Tensor& x, double divisor);
/// Of all elements, in f64 and in an order that depends on their number alone; f64 or f32.
double sum_of_squares(const Tensor& x);

}  // namespace palimpsest
