#include "autodiff/operations/constants.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Var Constants::operator()(const Tensor& tensor) const {
  return constant_of(*tape_, tensor, operation_, where_);
}

void Constants::look_at(const Var& x) {
  if (tape_ != nullptr) return;
  require_value(x, operation_, where_);
  tape_ = &x.tape();
}

}  // namespace palimpsest
