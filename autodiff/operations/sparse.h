#pragma once

#include "autodiff/export.h"
#include "autodiff/sparse.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The product A·x, or Aᵀ·x, of a sparse matrix and dense matrices x (…, columns, k); an x with one
/// axis is a vector. `values` holds A's entries in the order of `pattern`. Every element is summed
/// in a fixed order. Throws `ShapeError`, and `DTypeError` unless both are floating.
struct SparseMatmulOptions {
  bool transpose = false;
};
Var sparse_matmul(const SparsePattern& pattern, const Var& values, const Var& x,
                  const SparseMatmulOptions& options = {}, Where where = Where::current());

/// For each entry (i, j) of the pattern, the sum of a[…, i, :]·b[…, j, :]. These are the elements
/// of a·bᵀ at the pattern's positions, summed over the leading axes, which must be equal. The
/// adjoint of `sparse_matmul` with respect to the values.
Var sampled_matmul(const SparsePattern& pattern, const Var& a, const Var& b,
                   Where where = Where::current());

}  // namespace palimpsest
