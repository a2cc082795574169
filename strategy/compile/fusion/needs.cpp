#include "strategy/compile/fusion/needs.h"

#include <string>

namespace palimpsest {

Needs::Needs(const Tape& tape, std::span<const ValueId> targets, std::span<const NodeId> supplied,
             bool afresh)
    : wanted(tape.value_count()),
      present(tape.value_count()),
      sources(tape.node_count()),
      needed(tape.node_count()) {
  for (const ValueId target : targets) {
    if (target >= tape.value_count()) {
      throw ArgumentError("[run] target " + std::to_string(target) +
                          " is not a value of the tape, which has " +
                          std::to_string(tape.value_count()) + " values");
    }
    wanted[target] = true;
  }
  for (NodeId node = 0; node < tape.node_count(); ++node) sources[node] = tape.is_leaf(node);
  for (const NodeId node : supplied) sources[node] = true;
  for (ValueId value = 0; value < tape.value_count(); ++value) {
    present[value] = tape.has_value(value) && (!afresh || tape.is_leaf(tape.producer(value)));
  }
  read = wanted;
  for (NodeId node = tape.node_count(); node-- > 0;) {
    for (ValueId i = 0; i < tape.output_count(node); ++i) {
      const ValueId output = tape.first_output(node) + i;
      if (read[output] || present[output]) needed[node] = true;
    }
    if (!needed[node] || sources[node]) continue;
    for (const ValueId input : tape.inputs(node)) read[input] = true;
  }
}

}  // namespace palimpsest
