#include "strategy/base/parameters.h"

#include <string>

namespace palimpsest {

std::vector<Var> parameters_of(Tape& tape) {
  std::vector<Var> parameters;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.is_parameter(node)) parameters.push_back(tape.var(tape.first_output(node)));
  }
  return parameters;
}

void throw_without_parameters(const char* operation, const char* instead, const Where& where) {
  throw ArgumentError(operation,
                      "the tape has no parameters, so there are no gradients; record some with "
                      "tape.parameter(), or compute values with " +
                          std::string(instead),
                      where);
}

const Where& where_recorded(const Var& value) { return value.tape().where(value.node()); }

void require_scalar(const Var& loss, const Where& where) {
  if (loss.shape().elements() == 1) return;
  throw ShapeError("backward",
                   "the loss has shape " + to_string(loss.shape()) +
                       ", not one element; reduce it with sum() or mean()",
                   where);
}

}  // namespace palimpsest
