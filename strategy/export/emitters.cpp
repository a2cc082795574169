#include "strategy/export/emitters.h"

namespace palimpsest {

const CEmitters& c_emitters() {
  static const CEmitters all = [] {
    CEmitters emitters;
    add_elementwise_emitters(emitters);
    add_conversion_emitters(emitters);
    add_reduction_emitters(emitters);
    add_cumulative_emitters(emitters);
    add_shape_emitters(emitters);
    add_index_emitters(emitters);
    add_product_emitters(emitters);
    add_convolution_emitters(emitters);
    add_pool_emitters(emitters);
    add_normalization_emitters(emitters);
    add_softmax_emitters(emitters);
    add_factorization_emitters(emitters);
    return emitters;
  }();
  return all;
}

const CEmitter* find_c_emitter(std::string_view operation) {
  const auto found = c_emitters().find(operation);
  return found == c_emitters().end() ? nullptr : &found->second;
}

int first_alike_input(const NodeView& node, std::size_t output) {
  const ValueType type = node.output(output);
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const ValueType input = node.input(i);
    if (input.shape == type.shape && input.dtype == type.dtype) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace palimpsest
