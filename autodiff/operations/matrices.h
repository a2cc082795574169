#pragma once

#include <string>

#include "autodiff/var.h"

/// What the operations on matrices over leading axes share.
namespace palimpsest {

/// Everything but the last two axes.
Shape batch_of(const Shape& shape);
/// `batch` with the axes of a matrix behind it.
Shape with_matrix(Shape batch, std::int64_t rows, std::int64_t columns);

/// The shape two batches of matrices meet in. Throws `ShapeError` that names the whole shapes.
Shape broadcast_batches(const Shape& a, const Shape& b, const char* operation, const Where& where);

/// Throws unless x is floating and has the axes of a matrix, a square one where that is asked for.
void check_matrices(const char* operation, const Var& x, bool square, const Where& where);

}  // namespace palimpsest
