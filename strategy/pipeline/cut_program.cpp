#include "strategy/pipeline/cut_program.h"

#include <algorithm>

#include "autodiff/adjoint_origins.h"
#include "autodiff/operations/leaf.h"
#include "checkpoint/tape_graph.h"
#include "strategy/parameters.h"
#include "strategy/pipeline/division.h"

namespace palimpsest {
namespace {

/// True for a node that takes neither time nor memory: it is recorded wherever it is read.
bool is_free(const Tape& tape, NodeId node) {
  return tape.is_leaf(node) || tape.operation(node).view ||
         &tape.operation(node) == &full_operation;
}

/// By node of the backward part, the node of the forward part that it goes with. What is made of
/// adjoints of several nodes, such as the gradient of a parameter that these read, goes with the
/// first of them, and what is made of no adjoint with what reads it.
std::vector<NodeId> homes_of(const Tape& tape, NodeId backward_begins,
                             std::span<const NodeId> origins) {
  std::vector<NodeId> homes;
  for (NodeId node = backward_begins; node < tape.node_count(); ++node) {
    const NodeId origin = origins[node - backward_begins];
    NodeId home = tape.is_leaf(origin) ? none : origin;
    for (const ValueId input : tape.inputs(node)) {
      const NodeId producer = tape.producer(input);
      if (producer >= backward_begins) home = std::min(home, homes[producer - backward_begins]);
    }
    homes.push_back(home);
  }
  std::vector<NodeId> of_readers(homes.size(), 0);
  for (NodeId node = tape.node_count(); node-- > backward_begins;) {
    NodeId& home = homes[node - backward_begins];
    if (home == none) home = of_readers[node - backward_begins];
    for (const ValueId input : tape.inputs(node)) {
      const NodeId producer = tape.producer(input);
      if (producer < backward_begins) continue;
      NodeId& reader = of_readers[producer - backward_begins];
      reader = std::max(reader, home);
    }
  }
  return homes;
}

/// Cuts what `program.tape` holds.
class Cutter {
 public:
  Cutter(CutProgram& program, std::span<const NodeId> origins)
      : program_(program),
        tape_(program.tape),
        homes_(homes_of(tape_, program.backward_begins, origins)),
        graph_(graph_of(tape_, targets(), 1, program.backward_begins)) {}

  void cut(std::size_t stages) {
    needed_ = graph_.needed_nodes();
    for (const NodeId node : needed_) {
      if (node < program_.backward_begins && !is_free(tape_, node)) elements_.push_back(node);
    }
    std::vector<double> seconds(elements_.size());
    for (const NodeId node : needed_) {
      if (!elements_.empty()) seconds[element_of(node)] += graph_.cost(node);
    }
    const std::vector<Bytes> crossing = find_crossing();
    const Division division = divide(seconds, crossing, stages);
    for (const std::size_t begin : division.begins) {
      program_.stages.push_back({.first = elements_[begin], .incoming = crossing[begin]});
    }
    assign();
  }

 private:
  std::vector<ValueId> targets() const {
    std::vector<ValueId> targets = program_.gradients;
    targets.push_back(program_.outcome);
    return targets;
  }

  /// The node of the forward part that decides on the stage of a node.
  NodeId home(NodeId node) const {
    return node < program_.backward_begins ? node : homes_[node - program_.backward_begins];
  }

  /// The last element that is no later than its home.
  std::size_t element_of(NodeId node) const {
    const auto behind = std::upper_bound(elements_.begin(), elements_.end(), home(node));
    return behind == elements_.begin() ? 0
                                       : static_cast<std::size_t>(behind - elements_.begin()) - 1;
  }

  /// Bytes that are made before each element, and read by it or behind it.
  std::vector<Bytes> find_crossing() const {
    std::vector<std::size_t> read(tape_.value_count());  // by storage: the last element
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      for (const ValueId input : tape_.inputs(elements_[i])) read[graph_.storage(input)] = i;
    }
    std::vector<Bytes> changes(elements_.size() + 1);
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const ValueId first = tape_.first_output(elements_[i]);
      for (ValueId value = first; value < first + tape_.output_count(elements_[i]); ++value) {
        if (read[value] <= i) continue;
        changes[i + 1] += graph_.bytes(value);
        changes[read[value] + 1] -= graph_.bytes(value);
      }
    }
    std::vector<Bytes> crossing;
    Bytes bytes = 0;
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      bytes += changes[i];
      crossing.push_back(bytes);
    }
    return crossing;
  }

  void assign() {
    program_.piece_of.assign(tape_.node_count(), none);
    for (const NodeId node : needed_) {
      if (is_free(tape_, node)) continue;
      const bool is_backward = node >= program_.backward_begins;
      std::size_t stage = program_.stages.size() - 1;
      while (stage > 0 && program_.stages[stage].first > home(node)) --stage;
      CutProgram::Stage& found = program_.stages[stage];
      (is_backward ? found.backward : found.forward) += graph_.cost(node);
      program_.piece_of[node] =
          static_cast<PieceId>(is_backward ? program_.pieces() - 1 - stage : stage);
      if (!is_backward) continue;
      for (const ValueId input : tape_.inputs(node)) {
        const NodeId producer = tape_.producer(input);
        const bool is_room =
            tape_.operation(producer).has_room &&
            input + 1 == tape_.first_output(producer) + tape_.output_count(producer);
        if (is_room) found.has_loop = true;
      }
    }
  }

  CutProgram& program_;
  const Tape& tape_;
  std::vector<NodeId> homes_;
  Graph graph_;
  std::vector<NodeId> needed_;
  std::vector<NodeId> elements_;  // of the forward part, that divisions divide
};

std::unique_ptr<CutProgram> copy_of(Tape& tape, const Var& outcome, NodeId backward_begins) {
  auto program = std::make_unique<CutProgram>();
  program->tape.copy_nodes(tape);
  program->outcome = outcome.id();
  program->backward_begins = backward_begins;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const ValueId value = tape.first_output(node);
    if (node >= backward_begins && tape.is_leaf(node)) {
      program->tape.set_buffer(value, tape.buffer(value));
    }
    if (!tape.attributes(node).may_come_again()) program->comes_again = false;
  }
  return program;
}

/// Records one piece of a program.
class PieceRecorder {
 public:
  PieceRecorder(const CutProgram& program, PieceId piece)
      : program_(program), from_(program.tape), own_(from_.value_count(), none) {
    const auto stages = static_cast<PieceId>(program.stages.size());
    piece_.is_backward = piece >= stages;
    piece_.stage = static_cast<int>(piece_.is_backward ? program.pieces() - 1 - piece : piece);
  }

  void record_nodes(std::span<const NodeId> nodes) {
    bool begun = false;
    for (const NodeId node : nodes) {
      if (!begun && node >= program_.backward_begins) {
        piece_.wanted.backward_begins = piece_.tape->node_count();
        begun = true;
      }
      for (const ValueId input : from_.inputs(node)) find(input);
      record(node);
    }
    if (!begun) piece_.wanted.backward_begins = piece_.tape->node_count();
  }

  /// The value in the piece, which takes it from another one where it is not its own.
  ValueId find(ValueId value) {
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const NodeId node = from_.producer(open.back());
      if (own_[open.back()] != none) {
        open.pop_back();
      } else if (from_.is_leaf(node)) {
        record_leaf(node);
      } else if (!is_free(from_, node)) {
        const Var leaf = piece_.tape->placeholder(from_.type(open.back()), from_.where(node));
        own_[open.back()] = leaf.id();
        piece_.arguments.push_back(open.back());
        piece_.wanted.arguments.push_back(leaf.id());
      } else if (const auto missing = std::ranges::find_if(
                     from_.inputs(node), [&](ValueId input) { return own_[input] == none; });
                 missing != from_.inputs(node).end()) {
        open.push_back(*missing);
      } else {
        record(node);
      }
    }
    return own_[value];
  }

  void add_result(Piece::Result result) {
    piece_.wanted.results.push_back(find(result.value));
    piece_.results.push_back(result);
  }

  Piece& piece() { return piece_; }

 private:
  void record_leaf(NodeId node) {
    const ValueId value = from_.first_output(node);
    const Var leaf = piece_.tape->placeholder(from_.type(value), from_.where(node));
    if (!from_.name(node).empty()) piece_.tape->set_name(leaf.node(), from_.name(node));
    own_[value] = leaf.id();
    if (node < program_.backward_begins) {
      piece_.leaves.push_back({leaf.id(), value});
    } else {
      piece_.tape->set_buffer(leaf.id(), from_.buffer(value));
    }
  }

  void record(NodeId node) {
    Tape& tape = *piece_.tape;
    std::optional<Tape::Scope> scope;
    if (!from_.scope_of(node).empty()) scope.emplace(tape, from_.scope_of(node));
    std::vector<Var> inputs;
    for (const ValueId input : from_.inputs(node)) inputs.push_back(tape.var(own_[input]));
    const ValueId output = from_.first_output(node);
    std::vector<ValueType> types;
    for (ValueId i = 0; i < from_.output_count(node); ++i) types.push_back(from_.type(output + i));
    const Var first = tape.record(from_.operation(node), inputs, types, from_.attributes(node),
                                  from_.where(node));
    if (!from_.name(node).empty()) tape.set_name(first.node(), from_.name(node));
    for (ValueId i = 0; i < types.size(); ++i) own_[output + i] = first.id() + i;
  }

  const CutProgram& program_;
  const Tape& from_;
  Piece piece_;
  std::vector<ValueId> own_;  // by value of the program
};

/// The nodes of each piece, in order.
std::vector<std::vector<NodeId>> nodes_of(const CutProgram& program,
                                          const std::vector<bool>& computes_again) {
  const Tape& tape = program.tape;
  std::vector<std::vector<NodeId>> nodes(program.pieces());
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (program.piece_of[node] != none) nodes[program.piece_of[node]].push_back(node);
  }
  for (PieceId stage = 0; stage < program.stages.size(); ++stage) {
    std::vector<NodeId>& backward = nodes[program.pieces() - 1 - stage];
    if (!computes_again[stage]) continue;
    std::vector<bool> read(tape.node_count());
    const auto read_inputs = [&](NodeId node) {
      for (const ValueId input : tape.inputs(node)) read[tape.producer(input)] = true;
    };
    std::ranges::for_each(backward, read_inputs);
    // Nodes that are free, and belong to no piece, hand on who reads them.
    std::vector<NodeId> again;
    for (NodeId node = tape.node_count(); node-- > 0;) {
      if (!read[node]) continue;
      if (is_free(tape, node)) read_inputs(node);
      if (program.piece_of[node] != stage) continue;
      again.push_back(node);
      read_inputs(node);
    }
    backward.insert(backward.begin(), again.rbegin(), again.rend());
  }
  return nodes;
}

}  // namespace

std::unique_ptr<CutProgram> cut_loss(const Var& loss, int stages) {
  Tape& tape = loss.tape();
  const Tape::Temporary temporary(tape);
  const NodeId backward_begins = tape.node_count();
  require_scalar(loss, Where::current());
  std::vector<NodeId> origins;
  const std::vector<Var> gradients = vjp_with_origins({&loss, 1}, parameters_of(tape), origins);
  auto program = copy_of(tape, loss, backward_begins);
  for (const Var& gradient : gradients) program->gradients.push_back(gradient.id());
  Cutter(*program, origins).cut(static_cast<std::size_t>(stages));
  return program;
}

std::unique_ptr<CutProgram> cut_value(const Var& value, int stages) {
  auto program = copy_of(value.tape(), value, value.tape().node_count());
  Cutter(*program, {}).cut(static_cast<std::size_t>(stages));
  return program;
}

bool is_recorded_again(const CutProgram& program, const Var& outcome) {
  const Tape& tape = outcome.tape();
  return program.comes_again && program.outcome == outcome.id() &&
         program.backward_begins == tape.node_count() && tape.begins(program.tape);
}

std::vector<Piece> pieces_of(const CutProgram& program, const std::vector<bool>& computes_again) {
  const Tape& tape = program.tape;
  const std::vector<std::vector<NodeId>> nodes = nodes_of(program, computes_again);
  std::vector<PieceRecorder> recorders;
  for (PieceId piece = 0; piece < program.pieces(); ++piece) {
    recorders.emplace_back(program, piece).record_nodes(nodes[piece]);
  }
  using Use = Piece::Result::Use;
  const auto piece_of = [&](ValueId value, PieceId otherwise) {
    const PieceId piece = program.piece_of[tape.producer(value)];
    return piece != none ? piece : otherwise;
  };
  // What of these is not made in the piece comes from another one.
  const auto last_forward = static_cast<PieceId>(program.stages.size() - 1);
  recorders[piece_of(program.outcome, last_forward)].add_result({Use::outcome, program.outcome});
  for (std::size_t i = 0; i < program.gradients.size(); ++i) {
    PieceId piece = piece_of(program.gradients[i], program.pieces() - 1);
    piece = std::max(piece, last_forward + 1);  // what is a value of the forward part, too
    recorders[piece].add_result({Use::gradient, program.gradients[i], i});
  }
  std::vector<bool> handed(tape.value_count());
  for (PieceRecorder& reader : recorders) {
    for (const ValueId value : reader.piece().arguments) {
      handed[value] = true;
    }
  }
  for (ValueId value = 0; value < tape.value_count(); ++value) {
    if (handed[value]) recorders[piece_of(value, 0)].add_result({Use::other_pieces, value});
  }
  std::vector<Piece> pieces;
  for (PieceRecorder& recorder : recorders) pieces.push_back(std::move(recorder.piece()));
  return pieces;
}

}  // namespace palimpsest
