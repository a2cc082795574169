#pragma once

#include <span>
#include <vector>

#include "autodiff/tensor.h"

namespace palimpsest {

// Vectors of f64 that hold the elements of several tensors, one after the other. Work runs in
// parallel chunks that depend only on the size, so the bits are equal for any number of threads.

using FlatVector = std::vector<double>;

double dot(std::span<const double> a, std::span<const double> b);
/// The 2-norm.
double norm_of(std::span<const double> a);
/// y ← y + factor·x.
void add_scaled(std::span<double> y, double factor, std::span<const double> x);
/// x ← factor·x.
void multiply_by(std::span<double> x, double factor);

/// Copies the elements of floating tensors to `flat`, which has as many.
void gather(std::span<const Tensor> tensors, std::span<double> flat);
/// Copies the elements back, converted to the dtypes of the tensors.
void scatter(std::span<const double> flat, std::span<const Tensor> tensors);

}  // namespace palimpsest
