#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::span<const RowFamily> row_families() {
  static const RowFamily families[] = {
      {"leaf", leaf_rows},
      {"elementwise", elementwise_rows},
      {"reduce", reduce_rows},
      {"shape", shape_rows},
      {"index", index_rows},
      {"sorting", sorting_rows},
      {"softmax", softmax_rows},
      {"loss", loss_rows},
      {"normalization", normalization_rows},
      {"attention", attention_rows},
      {"recurrent", recurrent_rows},
      {"matmul", matmul_rows},
      {"linalg", linalg_rows},
      {"matrix functions", matrix_function_rows},
      {"sparse", sparse_rows},
      {"convolution", convolution_rows},
      {"image", image_rows},
      {"pool", pool_rows},
      {"random", random_rows},
      {"composed", composed_rows},
      {"construction", construction_rows},
      {"distance", distance_rows},
  };
  return families;
}

}  // namespace palimpsest
