#include "strategy/compile/fusion/work.h"

namespace palimpsest {

namespace {

bool is_single(const Lowered& lowered, NodeId unit) {
  return lowered.folded_constant(lowered.node(unit)) == nullptr &&
         lowered.program(unit) == nullptr && !lowered.accumulates(unit) &&
         lowered.epilogue(unit) == nullptr;
}

}  // namespace

std::string operation_of(const Tape& tape, const Lowered& lowered, NodeId unit) {
  return std::string(is_single(lowered, unit) ? tape.operation(lowered.node(unit)).name
                                              : lowered.graph().name(unit));
}

Cost cost_of_unit(const Tape& tape, const Lowered& lowered, NodeId unit) {
  if (!is_single(lowered, unit)) return lowered.joint_cost(unit);
  return cost_of(NodeView(tape.nodes(), lowered.node(unit)));
}

std::string work_of(const Tape& tape, const Lowered& lowered, NodeId unit) {
  const Graph& graph = lowered.graph();
  std::string work = operation_of(tape, lowered, unit);
  const auto put = [&](ValueId value) {
    work += ' ' + std::to_string(tape.bytes(lowered.recorded(value)));
  };
  for (const ValueId input : graph.inputs(unit)) put(input);
  work += " ->";
  for (ValueId i = 0; i < graph.output_count(unit); ++i) put(graph.first_output(unit) + i);
  return work;
}

std::string work_of(const Tape& tape, NodeId node) {
  std::string work(tape.operation(node).name);
  const auto put = [&](ValueId value) { work += ' ' + std::to_string(tape.bytes(value)); };
  for (const ValueId input : tape.inputs(node)) put(input);
  work += " ->";
  for (ValueId i = 0; i < tape.output_count(node); ++i) put(tape.first_output(node) + i);
  return work;
}

}  // namespace palimpsest
