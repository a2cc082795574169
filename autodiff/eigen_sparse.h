#pragma once

#include <Eigen/SparseCore>
#include <algorithm>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/operations/sparse.h"

/// Eigen's sparse matrices on a tape: conversion and products.
namespace palimpsest PALIMPSEST_EXPORT {

/// An Eigen sparse matrix in two parts: the positions of its entries, and their values in that
/// order.
struct SparseTensor {
  SparsePattern pattern;
  Tensor values;
};

/// Copies the entries of a sparse matrix or expression, row by row.
template <class Derived>
SparseTensor to_sparse(const Eigen::SparseMatrixBase<Derived>& matrix) {
  using Scalar = typename Derived::Scalar;
  Eigen::SparseMatrix<Scalar, Eigen::RowMajor, std::int64_t> rows(matrix.derived());
  rows.makeCompressed();
  const auto entries = static_cast<std::size_t>(rows.nonZeros());
  std::vector<std::int64_t> starts(rows.outerIndexPtr(), rows.outerIndexPtr() + rows.rows() + 1);
  std::vector<std::int32_t> columns(entries);
  std::transform(rows.innerIndexPtr(), rows.innerIndexPtr() + entries, columns.begin(),
                 [](std::int64_t column) { return static_cast<std::int32_t>(column); });
  return {SparsePattern(rows.rows(), rows.cols(), std::move(starts), std::move(columns)),
          Tensor::from(std::span<const Scalar>(rows.valuePtr(), entries),
                       Shape{static_cast<std::int64_t>(entries)})};
}

/// The product of a constant sparse matrix with x; the gradient flows to x only. Converts the
/// matrix on every call. To reuse a matrix, or to differentiate its values, call `to_sparse` once
/// and use the `sparse_matmul` overload that takes its parts.
template <class Derived>
Var sparse_matmul(const Eigen::SparseMatrixBase<Derived>& matrix, const Var& x,
                  const SparseMatmulOptions& options = {}, Where where = Where::current()) {
  const SparseTensor parts = to_sparse(matrix);
  return sparse_matmul(parts.pattern, x.tape().constant(parts.values, {}, where), x, options,
                       where);
}

}  // namespace palimpsest
