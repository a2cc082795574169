#include "strategy/parallel/partition/recorded_program.h"

#include <algorithm>

#include "autodiff/adjoint_origins.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/recording_guards.h"
#include "strategy/base/parameters.h"

namespace palimpsest {
namespace {

void copy(RecordedProgram& program, Tape& tape, const Var& outcome, NodeId backward_begins) {
  program.tape.copy_nodes(tape);
  program.outcome = outcome.id();
  program.backward_begins = backward_begins;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const ValueId value = tape.first_output(node);
    if (node >= backward_begins && tape.is_leaf(node)) {
      program.tape.set_buffer(value, tape.buffer(value));
    }
    if (!tape.attributes(node).may_come_again()) program.comes_again = false;
  }
}

/// `origins`: by node of the backward part, the forward node of which it is an adjoint.
void find_owners(RecordedProgram& program, std::span<const NodeId> origins) {
  const Tape& tape = program.tape;
  const NodeId backward_begins = program.backward_begins;
  std::vector<NodeId>& owners = program.owners;
  for (NodeId node = 0; node < backward_begins; ++node) owners.push_back(node);
  for (NodeId node = backward_begins; node < tape.node_count(); ++node) {
    const NodeId origin = origins[node - backward_begins];
    NodeId owner = tape.is_leaf(origin) ? none : origin;
    for (const ValueId input : tape.inputs(node)) {
      const NodeId producer = tape.producer(input);
      if (producer >= backward_begins) owner = std::min(owner, owners[producer]);
    }
    owners.push_back(owner);
  }
  std::vector<NodeId> of_readers(owners.size(), 0);
  for (NodeId node = tape.node_count(); node-- > backward_begins;) {
    if (owners[node] == none) owners[node] = of_readers[node];
    for (const ValueId input : tape.inputs(node)) {
      NodeId& reader = of_readers[tape.producer(input)];
      reader = std::max(reader, owners[node]);
    }
  }
}

}  // namespace

void record_loss(RecordedProgram& program, const LossAndOutputs& values) {
  const Var& loss = values.loss;
  Tape& tape = loss.tape();
  const ExtractedNodes temporary(tape);
  const NodeId backward_begins = tape.node_count();
  require_scalar(loss, where_recorded(loss));
  std::vector<NodeId> origins;
  const std::vector<Var> gradients = vjp_with_origins({&loss, 1}, parameters_of(tape), origins);
  copy(program, tape, loss, backward_begins);
  for (const Var& gradient : gradients) program.gradients.push_back(gradient.id());
  for (const Var& output : values.outputs) program.outputs.push_back(output.id());
  find_owners(program, origins);
}

void record_value(RecordedProgram& program, const Var& value) {
  copy(program, value.tape(), value, value.tape().node_count());
  find_owners(program, {});
}

bool is_recorded_again(const RecordedProgram& program, const LossAndOutputs& values) {
  const Tape& tape = values.loss.tape();
  return program.comes_again && program.outcome == values.loss.id() &&
         std::ranges::equal(program.outputs, values.outputs, {}, {}, &Var::id) &&
         program.backward_begins == tape.node_count() && tape.begins(program.tape);
}

bool is_free(const Tape& tape, NodeId node) {
  return tape.is_leaf(node) || tape.operation(node).view ||
         &tape.operation(node) == &full_operation;
}

bool reads_states(const Tape& tape, NodeId node) {
  return std::ranges::any_of(tape.inputs(node), [&](ValueId input) {
    const NodeId producer = tape.producer(input);
    return tape.operation(producer).has_state_budget &&
           input + 1 == tape.first_output(producer) + tape.output_count(producer);
  });
}

}  // namespace palimpsest
