// Only the C++ types of a dtype are element types.
#include "autodiff/tensor.h"

#ifdef WRONG
using Number = unsigned;
#else
using Number = float;
#endif

double sum(const palimpsest::Tensor& tensor) {
  double total = 0;
  for (const Number x : tensor.data<Number>()) total += x;
  return total;
}
