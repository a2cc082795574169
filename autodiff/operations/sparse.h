#pragma once

#include "autodiff/export.h"
#include "autodiff/sparse.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

struct SparseMatmulOptions {
  bool transpose = false;  ///< multiplies by Aᵀ
};
/// The product A·x of a sparse matrix (rows, columns) and dense matrices x (…, columns, k), or Aᵀ·x
/// for x (…, rows, k). An x with one axis is a vector. `values` (entries) holds A's entries in the
/// order of `pattern`. Every element is summed in a fixed order. Throws `ShapeError` when the
/// shapes do not fit, `DTypeError` unless both are floating.
Var sparse_matmul(const SparsePattern& pattern, const Var& values, const Var& x,
                  const SparseMatmulOptions& options = {}, Where where = Where::current());

/// For each entry (i, j) of the pattern, the sum of a[…, i, :]·b[…, j, :]; the result is (entries).
/// These are the elements of a·bᵀ at the pattern's positions, summed over the leading axes, which
/// must be equal. The adjoint of `sparse_matmul` with respect to the values. Throws likewise.
Var sampled_matmul(const SparsePattern& pattern, const Var& a, const Var& b,
                   Where where = Where::current());

}  // namespace palimpsest
