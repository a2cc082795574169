#pragma once

#include <span>

#include "autodiff/operation.h"

namespace palimpsest {

// Each family's file lists its operations; `operations()` concatenates the lists.
std::span<const Operation* const> leaf_operations();
std::span<const Operation* const> unary_operations();
std::span<const Operation* const> binary_operations();
std::span<const Operation* const> gamma_function_operations();
std::span<const Operation* const> logical_operations();
std::span<const Operation* const> reduce_operations();
std::span<const Operation* const> extreme_operations();
std::span<const Operation* const> moment_operations();
std::span<const Operation* const> norm_operations();
std::span<const Operation* const> cumsum_operations();
std::span<const Operation* const> cumulative_operations();
std::span<const Operation* const> shape_operations();
std::span<const Operation* const> softmax_operations();
std::span<const Operation* const> classification_operations();
std::span<const Operation* const> normalization_operations();
std::span<const Operation* const> attention_operations();
std::span<const Operation* const> matmul_operations();
std::span<const Operation* const> triangle_operations();
std::span<const Operation* const> cholesky_operations();
std::span<const Operation* const> triangular_solve_operations();
std::span<const Operation* const> solve_operations();
std::span<const Operation* const> determinant_operations();
std::span<const Operation* const> cofactor_operations();
std::span<const Operation* const> qr_operations();
std::span<const Operation* const> eigh_operations();
std::span<const Operation* const> gap_operations();
std::span<const Operation* const> svd_operations();
std::span<const Operation* const> matrix_exp_operations();
std::span<const Operation* const> sparse_operations();
std::span<const Operation* const> slice_operations();
std::span<const Operation* const> concat_operations();
std::span<const Operation* const> roll_operations();
std::span<const Operation* const> index_operations();
std::span<const Operation* const> scatter_operations();
std::span<const Operation* const> scatter_reduce_operations();
std::span<const Operation* const> scatter_sum_operations();
std::span<const Operation* const> nonzero_operations();
std::span<const Operation* const> sort_operations();
std::span<const Operation* const> lexsort_operations();
std::span<const Operation* const> search_operations();
std::span<const Operation* const> random_operations();
std::span<const Operation* const> truncated_normal_operations();
std::span<const Operation* const> random_gamma_operations();
std::span<const Operation* const> sampling_operations();
std::span<const Operation* const> convolution_operations();
std::span<const Operation* const> unfold_operations();
std::span<const Operation* const> max_pool_operations();
std::span<const Operation* const> average_pool_operations();
std::span<const Operation* const> resize_operations();
std::span<const Operation* const> grid_sample_operations();

/// Operations of ctc.cpp, members of the family of classification.
extern const Operation ctc_operation;
extern const Operation ctc_adjoint_operation;

}  // namespace palimpsest
