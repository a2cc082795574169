#include "strategy/pieces/elements.h"

#include <algorithm>

#include "checkpoint/tape_graph.h"

namespace palimpsest {
namespace {

std::vector<ValueId> targets_of(const RecordedProgram& program) {
  std::vector<ValueId> targets = program.gradients;
  targets.push_back(program.outcome);
  return targets;
}

}  // namespace

Elements::Elements(const RecordedProgram& program)
    : program_(program),
      graph_(graph_of(program.tape, targets_of(program), 1, program.backward_begins)),
      needed_(graph_.needed_nodes()) {
  for (const NodeId node : needed_) {
    if (node < program.backward_begins && !is_free(program.tape, node)) nodes_.push_back(node);
  }
}

std::size_t Elements::of(NodeId node) const {
  const auto behind = std::upper_bound(nodes_.begin(), nodes_.end(), program_.homes[node]);
  return behind == nodes_.begin() ? 0 : static_cast<std::size_t>(behind - nodes_.begin()) - 1;
}

std::vector<double> Elements::seconds() const {
  std::vector<double> seconds(size());
  for (const NodeId node : needed_) {
    if (size() > 0) seconds[of(node)] += graph_.cost(node);
  }
  return seconds;
}

std::vector<Bytes> Elements::crossing() const {
  const Tape& tape = program_.tape;
  std::vector<std::size_t> read(tape.value_count());  // by storage: the last element
  for (std::size_t i = 0; i < size(); ++i) {
    for (const ValueId input : tape.inputs(nodes_[i])) read[graph_.storage(input)] = i;
  }
  std::vector<Bytes> changes(size() + 1);
  for (std::size_t i = 0; i < size(); ++i) {
    const ValueId first = tape.first_output(nodes_[i]);
    for (ValueId value = first; value < first + tape.output_count(nodes_[i]); ++value) {
      if (read[value] <= i) continue;
      changes[i + 1] += graph_.bytes(value);
      changes[read[value] + 1] -= graph_.bytes(value);
    }
  }
  std::vector<Bytes> crossing;
  Bytes bytes = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    bytes += changes[i];
    crossing.push_back(bytes);
  }
  return crossing;
}

}  // namespace palimpsest
