#pragma once

#include <vector>

#include "tests/autodiff/operation_rows.h"

namespace palimpsest::oracle {

/// Rows in addition to those of tests/autodiff: special values of `dtype`, and functions on several
/// kinds of shapes. The floating inputs have the type `dtype`.
std::vector<OperationRow> rows_of(DType dtype);
/// Rows of dtypes without derivatives, and of pairs of dtypes.
std::vector<OperationRow> rows_of_other_dtypes();

// Parts of `rows_of`.
std::vector<OperationRow> function_rows(DType dtype);
std::vector<OperationRow> line_rows(DType dtype);
std::vector<OperationRow> layer_rows(DType dtype);

/// Zeros, infinities, NaN, the ends of the ranges of normal and subnormal numbers, and numbers
/// where functions bend or overflow.
std::vector<double> special_numbers(DType dtype);
/// A vector of `dtype`.
Tensor numbers(const std::vector<double>& values, DType dtype);

}  // namespace palimpsest::oracle
