#include "autodiff/operations/linear.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/matmul.h"

namespace palimpsest {

Var linear(const Var& x, const Var& weight, const Var& bias, Where where) {
  const Var y = matmul(x, weight, {}, where);
  return bias.defined() ? add(y, bias, where) : y;
}

}  // namespace palimpsest
