#include "strategy/base/parameters.h"

namespace palimpsest {

std::vector<Var> parameters_of(Tape& tape) {
  std::vector<Var> parameters;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.is_parameter(node)) parameters.push_back(tape.var(tape.first_output(node)));
  }
  return parameters;
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
