#include "strategy/fusion/work.h"

namespace palimpsest {

std::string operation_of(const Tape& tape, const Lowered& lowered, NodeId unit) {
  const bool single = lowered.literal(lowered.node(unit)) == nullptr &&
                      lowered.program(unit) == nullptr && !lowered.accumulates(unit) &&
                      lowered.finishing(unit) == nullptr;
  return std::string(single ? tape.operation(lowered.node(unit)).name : lowered.graph().name(unit));
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

}  // namespace palimpsest
