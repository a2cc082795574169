#include "autodiff/operations/constants.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Var Constants::operator()(const Tensor& tensor) const {
  if (tape_ == nullptr) {
    throw ArgumentError(operation_, "none of the operands is a Var; give at least one", where_);
  }
  return constant_of(*tape_, tensor, operation_, where_);
}

Var Constants::operator()(const VarOrTensor& x) const {
  return x.is_tensor() ? (*this)(x.tensor()) : x.x();
}

std::vector<Var> Constants::operator()(std::initializer_list<VarOrTensor> list) const {
  std::vector<Var> all;
  for (const VarOrTensor& x : list) all.push_back((*this)(x));
  return all;
}

void Constants::look_at(const VarOrTensor& x) {
  // An empty handle stands for an axis that is taken whole.
  if (!x.is_tensor() && x.x().defined()) look_at(x.x());
}

void Constants::look_at(std::initializer_list<VarOrTensor> list) {
  for (const VarOrTensor& x : list) look_at(x);
}

void Constants::look_at(const Var& x) {
  if (tape_ != nullptr) return;
  require_value(x, operation_, where_);
  tape_ = &x.tape();
}

}  // namespace palimpsest
