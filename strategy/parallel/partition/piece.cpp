#include "strategy/parallel/partition/piece.h"

#include <algorithm>
#include <map>
#include <set>

namespace palimpsest {
namespace {

/// Records one piece of a program.
class PieceRecorder {
 public:
  PieceRecorder(const RecordedProgram& program, const PieceCut::Kind& kind)
      : program_(&program), from_(&program.tape), own_(from_->value_count(), none) {
    piece_.stage = kind.stage;
    piece_.is_backward = kind.is_backward;
  }

  void record_nodes(std::span<const NodeId> nodes) {
    bool begun = false;
    for (const NodeId node : nodes) {
      if (!begun && node >= program_->backward_begins) {
        piece_.wanted.backward_begins = piece_.tape->node_count();
        begun = true;
      }
      for (const ValueId input : from_->inputs(node)) find(input);
      record(node);
    }
    if (!begun) piece_.wanted.backward_begins = piece_.tape->node_count();
  }

  /// The value's id in the piece. If another piece makes the value, it becomes an argument.
  ValueId find(ValueId value) {
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const NodeId node = from_->producer(open.back());
      if (own_[open.back()] != none) {
        open.pop_back();
      } else if (from_->is_leaf(node)) {
        record_leaf(node);
      } else if (!is_free(*from_, node)) {
        const Var leaf = piece_.tape->placeholder(from_->type(open.back()), from_->where(node));
        own_[open.back()] = leaf.id();
        piece_.arguments.push_back(open.back());
        piece_.wanted.arguments.push_back(leaf.id());
      } else if (const auto missing = std::ranges::find_if(
                     from_->inputs(node), [&](ValueId input) { return own_[input] == none; });
                 missing != from_->inputs(node).end()) {
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
    const ValueId value = from_->first_output(node);
    const Var leaf = piece_.tape->placeholder(from_->type(value), from_->where(node));
    if (!from_->name(node).empty()) piece_.tape->set_name(leaf.node(), from_->name(node));
    own_[value] = leaf.id();
    if (node < program_->backward_begins) {
      piece_.leaves.push_back({leaf.id(), value});
    } else {
      piece_.tape->set_buffer(leaf.id(), from_->buffer(value));
    }
  }

  void record(NodeId node) {
    Tape& tape = *piece_.tape;
    const Tape::Scope scope(tape, *from_, node);
    std::vector<Var> inputs;
    for (const ValueId input : from_->inputs(node)) inputs.push_back(tape.var(own_[input]));
    const ValueId output = from_->first_output(node);
    std::vector<ValueType> types;
    for (ValueId i = 0; i < from_->output_count(node); ++i)
      types.push_back(from_->type(output + i));
    const Var first = tape.record(from_->operation(node), inputs, types, from_->attributes(node),
                                  from_->where(node));
    if (!from_->name(node).empty()) tape.set_name(first.node(), from_->name(node));
    for (ValueId i = 0; i < types.size(); ++i) own_[output + i] = first.id() + i;
  }

  const RecordedProgram* program_;
  const Tape* from_;
  Piece piece_;
  std::vector<ValueId> own_;  // by value of the program
};

}  // namespace

std::vector<Piece> record_pieces(const RecordedProgram& program, const PieceCut& cut) {
  const Tape& tape = program.tape;
  std::vector<PieceRecorder> recorders;
  for (PieceId piece = 0; piece < cut.pieces.size(); ++piece) {
    recorders.emplace_back(program, cut.pieces[piece]).record_nodes(cut.nodes[piece]);
  }
  using Use = Piece::Result::Use;
  // For a view, the piece that makes the viewed value.
  const auto piece_of = [&](ValueId value, PieceId otherwise) {
    NodeId node = tape.producer(value);
    while (tape.operation(node).view) node = tape.producer(tape.inputs(node)[0]);
    return cut.piece_of[node] != none ? cut.piece_of[node] : otherwise;
  };
  // Results not made in the piece are arguments from another piece.
  recorders[piece_of(program.outcome, cut.of_outcome)].add_result({Use::outcome, program.outcome});
  for (std::size_t i = 0; i < program.gradients.size(); ++i) {
    const ValueId gradient = program.gradients[i];
    const PieceId piece = std::max(piece_of(gradient, cut.of_gradients), cut.of_gradients);
    recorders[piece].add_result({Use::gradient, gradient, i});
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const ValueId output = program.outputs[i];
    recorders[piece_of(output, cut.of_outcome)].add_result({Use::output, output, i});
  }
  // From the last piece to the first, since a piece without wanted results requests nothing.
  std::map<PieceId, std::set<ValueId>> handed;  // by the piece that makes it
  for (auto piece = static_cast<PieceId>(recorders.size()); piece-- > 0;) {
    for (const ValueId value : handed[piece]) {
      recorders[piece].add_result({Use::other_pieces, value});
    }
    if (recorders[piece].piece().results.empty()) {
      recorders[piece] = PieceRecorder(program, cut.pieces[piece]);
    }
    for (const ValueId value : recorders[piece].piece().arguments) {
      handed[cut.piece_of[tape.producer(value)]].insert(value);
    }
  }
  std::vector<Piece> pieces;
  for (PieceRecorder& recorder : recorders) pieces.push_back(std::move(recorder.piece()));
  return pieces;
}

LentLeaves::LentLeaves(const Piece& piece, const Tape& tape) : piece_(piece) {
  for (const auto& [own, recorded] : piece.leaves) {
    piece.tape->set_buffer(own, tape.buffer(recorded));
  }
}

LentLeaves::~LentLeaves() {
  for (const auto& [own, recorded] : piece_.leaves) piece_.tape->set_buffer(own, nullptr);
}

}  // namespace palimpsest
