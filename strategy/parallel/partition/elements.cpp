#include "strategy/parallel/partition/elements.h"

#include <algorithm>

#include "checkpoint/tape_graph.h"

namespace palimpsest {
namespace {

std::vector<ValueId> targets_of(const RecordedProgram& program) {
  std::vector<ValueId> targets = program.gradients;
  targets.insert(targets.end(), program.outputs.begin(), program.outputs.end());
  targets.push_back(program.outcome);
  return targets;
}

}  // namespace

Elements::Elements(const RecordedProgram& program)
    : program_(program),
      graph_(graph_of(program.tape, targets_of(program), 1, program.backward_begins)),
      needed_(graph_.needed_nodes()) {
  const Tape& tape = program.tape;
  std::vector<NodeId> one_with(tape.node_count());  // by node: the last node of the same element
  for (const NodeId node : needed_) {
    if (node >= program.backward_begins || !reads_states(tape, node)) continue;
    for (const ValueId input : tape.inputs(node)) {
      if (tape.operation(tape.producer(input)).has_state_budget)
        one_with[tape.producer(input)] = node;
    }
  }
  NodeId last = 0;
  for (const NodeId node : needed_) {
    if (node >= program.backward_begins || is_free(tape, node)) continue;
    if (node > last || nodes_.empty()) nodes_.push_back(node);
    last = std::max(last, one_with[node]);
  }
}

std::size_t Elements::of(NodeId node) const {
  const auto behind = std::upper_bound(nodes_.begin(), nodes_.end(), program_.owners[node]);
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
  std::vector<std::size_t> read(tape.value_count());  // by storage: the last element that reads it
  const auto for_nodes = [&](auto f) {
    for (const NodeId node : needed_) {
      if (node < program_.backward_begins && !is_free(tape, node)) f(node, of(node));
    }
  };
  for_nodes([&](NodeId node, std::size_t element) {
    for (const ValueId input : tape.inputs(node)) read[graph_.storage(input)] = element;
  });
  std::vector<Bytes> changes(size() + 1);
  for_nodes([&](NodeId node, std::size_t element) {
    const ValueId first = tape.first_output(node);
    for (ValueId value = first; value < first + tape.output_count(node); ++value) {
      if (read[value] <= element) continue;
      changes[element + 1] += graph_.bytes(value);
      changes[read[value] + 1] -= graph_.bytes(value);
    }
  });
  std::vector<Bytes> crossing;
  Bytes bytes = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    bytes += changes[i];
    crossing.push_back(bytes);
  }
  return crossing;
}

}  // namespace palimpsest
