#include "autodiff/operations/constants.h"

namespace palimpsest {

Var Constants::operator()(const Tensor& tensor) const {
  if (!tensor.defined()) {
    throw ArgumentError(operation_, "an argument is an empty tensor; assign one first", where_);
  }
  return tape_->constant(tensor, {}, where_);
}

void Constants::look_at(const Var& x) {
  if (tape_ != nullptr) return;
  require_value(x, operation_, where_);
  tape_ = &x.tape();
}

}  // namespace palimpsest
