#include "strategy/execution/choice/record_again.h"

#include <optional>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {
namespace {

void record_leaf(const Tape& from, NodeId node, Tape& to) {
  const ValueId value = from.first_output(node);
  const Tensor tensor(from.buffer(value), from.shape(value), from.dtype(value));
  if (from.is_parameter(node)) {
    to.parameter(tensor, from.name(node), from.where(node));
  } else {
    to.constant(tensor, from.name(node), from.where(node));
  }
}

void record_operation(const Tape& from, NodeId node, Tape& to) {
  std::vector<Var> inputs;
  for (const ValueId input : from.inputs(node)) inputs.push_back(to.var(input));
  std::vector<ValueType> types;
  for (ValueId i = 0; i < from.output_count(node); ++i) {
    types.push_back(from.type(from.first_output(node) + i));
  }
  std::optional<Tape::NoGradient> blocked;
  if (from.is_blocked(node)) blocked.emplace(to);
  to.record(from.operation(node), inputs, types, from.attributes(node), from.where(node));
}

}  // namespace

void record_again(const Tape& from, Tape& to) {
  for (NodeId node = 0; node < from.node_count(); ++node) {
    const Tape::Scope scope(to, from, node);
    if (from.is_leaf(node)) {
      record_leaf(from, node, to);
    } else {
      record_operation(from, node, to);
    }
  }
}

}  // namespace palimpsest
