#pragma once

#include <string>

#include "autodiff/var.h"

/// Helpers for operations on batches of matrices.
namespace palimpsest {

/// All axes except the last two.
Shape batch_of(const Shape& shape);
/// `batch` followed by the axes of a matrix.
Shape with_matrix(Shape batch, std::int64_t rows, std::int64_t columns);

/// The broadcast shape of two batches of matrices. Throws `ShapeError` naming the complete shapes.
Shape broadcast_batches(const Shape& a, const Shape& b, const char* operation, const Where& where);

/// Throws unless x is floating and has at least two axes, and is square if `square`.
void check_matrices(const char* operation, const Var& x, bool square, const Where& where);

/// The distance from 1 to the next number of a floating dtype.
double epsilon_of(DType dtype);

}  // namespace palimpsest
