#pragma once

#include "autodiff/sparse.h"
#include "autodiff/var.h"

namespace palimpsest {

/// The product A·x, or Aᵀ·x, of the sparse matrix with `pattern` and `values` (entries in its
/// order) and the dense matrices x (…, columns, k); one axis is a vector. Every element is summed
/// in a fixed order. Throws `ShapeError`, and `DTypeError` unless both are floating.
struct SparseMatmulOptions {
  bool transpose = false;
};
Var sparse_matmul(const SparsePattern& pattern, const Var& values, const Var& x,
                  const SparseMatmulOptions& options = {}, Where where = Where::current());

/// For each entry (i, j) of the pattern, the sum of a[…, i, :]·b[…, j, :]: the elements of a·bᵀ
/// that the pattern has, added up over the axes in front, which are equal. The adjoint of
/// `sparse_matmul` with respect to the values.
Var sampled_matmul(const SparsePattern& pattern, const Var& a, const Var& b,
                   Where where = Where::current());

}  // namespace palimpsest
