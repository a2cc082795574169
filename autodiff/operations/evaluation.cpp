#include "autodiff/operations/evaluation.h"

#include <string>

#include "autodiff/interpreter.h"

namespace palimpsest {

Var constant_of(Tape& tape, const Tensor& tensor, std::string_view operation, const Where& where) {
  if (!tensor.defined()) {
    throw ArgumentError(operation, "an argument is an empty tensor; assign one first", where);
  }
  return tape.constant(tensor, {}, where);
}

Evaluation::Evaluation(std::string_view operation, const Where& where)
    : operation_(operation), where_(where) {}

Evaluation::Evaluation(std::string_view operation, const Where& where, std::uint64_t seed)
    : Evaluation(operation, where) {
  tape_.set_seed(seed);
}

// Here, so that it is not compiled into every function of tensors.
Evaluation::~Evaluation() = default;

Var Evaluation::operator()(const Tensor& tensor) {
  return constant_of(tape_, tensor, operation_, where_);
}

std::vector<Var> Evaluation::operator()(std::span<const Tensor> tensors) {
  std::vector<Var> constants;
  for (const Tensor& tensor : tensors) constants.push_back((*this)(tensor));
  return constants;
}

Var Evaluation::optional(const Tensor& tensor) {
  return tensor.defined() ? (*this)(tensor) : Var();
}

Tensor Evaluation::result(const Var& x) { return tape_.value(x.id()); }

std::vector<Tensor> Evaluation::results(std::span<const Var> xs) {
  std::vector<ValueId> ids;
  for (const Var& x : xs) {
    if (x.defined()) ids.push_back(x.id());
  }
  interpret(tape_, ids);
  std::vector<Tensor> tensors;
  for (const Var& x : xs) tensors.push_back(x.defined() ? tape_.value(x.id()) : Tensor());
  return tensors;
}

}  // namespace palimpsest
