#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {

Kernels make_kernels() {
  Kernels kernels{};
  add_unary(kernels);
  add_adjoint(kernels);
  add_binary(kernels);
  add_arithmetic(kernels);
  add_half(kernels);
  add_gemm(kernels);
  add_softmax(kernels);
  add_convolution(kernels);
  add_normalize(kernels);
  add_pool(kernels);
  add_sort(kernels);
  return kernels;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
