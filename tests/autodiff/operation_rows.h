#pragma once

#include <string>
#include <vector>

#include "autodiff/gradcheck.h"

namespace palimpsest {

/// One test case of an operation: its inputs and how to call it. The tests check gradients in f64
/// up to `order`, f32 and 16-bit values against f64, and that recomputing gives the same bits.
struct OperationRow {
  std::string operation;  ///< a name in `operations()`
  std::string label;      ///< distinguishes the rows of an operation
  std::vector<Tensor> inputs;
  Differentiable call;
  int order = 2;     ///< 0: values only, for operations without derivatives
  bool half = true;  ///< false where 16-bit precision makes the value meaningless
};

/// Standard normal numbers in f64.
inline Tensor normal_numbers(const Shape& shape, std::uint64_t seed) {
  return Tensor::normal(shape, seed, 0, 1, DType::f64);
}

/// The rows of one source file of operations.
struct RowFamily {
  const char* name;
  std::vector<OperationRow> (*rows)();
};

/// All families. A test fails when a registered operation has no row in any of them.
std::span<const RowFamily> row_families();

std::vector<OperationRow> leaf_rows();
std::vector<OperationRow> elementwise_rows();
std::vector<OperationRow> composed_rows();
std::vector<OperationRow> construction_rows();
std::vector<OperationRow> reduce_rows();
std::vector<OperationRow> shape_rows();
std::vector<OperationRow> index_rows();
std::vector<OperationRow> sorting_rows();
std::vector<OperationRow> matmul_rows();
std::vector<OperationRow> linalg_rows();
std::vector<OperationRow> matrix_function_rows();
std::vector<OperationRow> sparse_rows();
std::vector<OperationRow> convolution_rows();
std::vector<OperationRow> pool_rows();
std::vector<OperationRow> image_rows();
std::vector<OperationRow> normalization_rows();
std::vector<OperationRow> softmax_rows();
std::vector<OperationRow> loss_rows();
std::vector<OperationRow> distance_rows();
std::vector<OperationRow> attention_rows();
std::vector<OperationRow> recurrent_rows();
std::vector<OperationRow> random_rows();

}  // namespace palimpsest
