#pragma once

#include "autodiff/var.h"

namespace palimpsest {

/// Which operands of `matmul` are read transposed in their last two axes. Nothing is copied.
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

/// Matrix products over the last two axes, (…, m, k)·(…, k, n) → (…, m, n), with the axes in front
/// broadcast as NumPy does. A vector is a row on the left and a column on the right and loses that
/// axis in the result; it cannot be transposed. Operands meet in the promoted dtype. Throws
/// `ShapeError` for shapes that do not multiply, `DTypeError` unless both are floating.
Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {},
           Where where = Where::current());

/// The products of matrices (no vectors) of one dtype, added up over the batch axes that `batch`,
/// the result's, lacks or has with size 1: what the adjoints of broadcast operands are.
Var matmul_sum(const Var& a, const Var& b, const MatmulOptions& options, const Shape& batch,
               Where where = Where::current());

}  // namespace palimpsest
