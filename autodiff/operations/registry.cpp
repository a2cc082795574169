#include "autodiff/operations/registry.h"

#include <vector>

namespace palimpsest {

std::span<const Operation* const> operations() {
  static const std::vector<const Operation*> all = [] {
    std::vector<const Operation*> list;
    for (const auto family : {
             leaf_operations(),
             unary_operations(),
             binary_operations(),
             gamma_function_operations(),
             logical_operations(),
             reduce_operations(),
             extreme_operations(),
             moment_operations(),
             norm_operations(),
             cumsum_operations(),
             cumulative_operations(),
             shape_operations(),
             softmax_operations(),
             classification_operations(),
             normalization_operations(),
             attention_operations(),
             matmul_operations(),
             triangle_operations(),
             cholesky_operations(),
             triangular_solve_operations(),
             solve_operations(),
             determinant_operations(),
             cofactor_operations(),
             qr_operations(),
             eigh_operations(),
             gap_operations(),
             svd_operations(),
             matrix_exp_operations(),
             sparse_operations(),
             slice_operations(),
             concat_operations(),
             roll_operations(),
             index_operations(),
             scatter_operations(),
             scatter_reduce_operations(),
             scatter_sum_operations(),
             nonzero_operations(),
             sort_operations(),
             lexsort_operations(),
             search_operations(),
             random_operations(),
             truncated_normal_operations(),
             random_gamma_operations(),
             sampling_operations(),
             convolution_operations(),
             unfold_operations(),
             max_pool_operations(),
             average_pool_operations(),
             resize_operations(),
             grid_sample_operations(),
         }) {
      list.insert(list.end(), family.begin(), family.end());
    }
    return list;
  }();
  return all;
}

}  // namespace palimpsest
