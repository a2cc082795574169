#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Operands of `matmul` that are read transposed in their last two axes. Nothing is copied.
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

/// Matrix products over the last two axes, (…, m, k)·(…, k, n) → (…, m, n). Leading axes broadcast
/// as in NumPy. A vector is a row on the left or a column on the right; that axis is removed from
/// the result, and it cannot be transposed. Operands are promoted to a common dtype. Throws
/// `ShapeError` for shapes that do not multiply, `DTypeError` unless both are floating.
Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {},
           Where where = Where::current());

/// Products of matrices (no vectors) of one dtype, with the batch shape `batch`. They are summed
/// over batch axes that `batch` lacks or has with size 1. The adjoints of broadcast operands have
/// this form.
Var matmul_sum(const Var& a, const Var& b, const MatmulOptions& options, const Shape& batch,
               Where where = Where::current());

}  // namespace palimpsest
