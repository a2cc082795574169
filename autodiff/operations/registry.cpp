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
             reduce_operations(),
             shape_operations(),
             softmax_operations(),
             classification_operations(),
             matmul_operations(),
             convolution_operations(),
         }) {
      list.insert(list.end(), family.begin(), family.end());
    }
    return list;
  }();
  return all;
}

}  // namespace palimpsest
