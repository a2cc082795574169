#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::span<const RowFamily> row_families() {
  // clang-format off: one family a line
  static const RowFamily families[] = {
      {"leaf", leaf_rows},
      {"elementwise", elementwise_rows},
      {"reduce", reduce_rows},
      {"shape", shape_rows},
      {"index", index_rows},
      {"random", random_rows},
      {"softmax", softmax_rows},
      {"loss", loss_rows},
      {"matmul", matmul_rows},
  };
  // clang-format on
  return families;
}

}  // namespace palimpsest
