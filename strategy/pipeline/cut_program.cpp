#include "strategy/pipeline/cut_program.h"

#include <algorithm>

#include "checkpoint/tape_graph.h"
#include "strategy/pipeline/division.h"

namespace palimpsest {
namespace {

/// Cuts what `program.tape` holds.
class Cutter {
 public:
  explicit Cutter(CutProgram& program)
      : program_(program),
        tape_(program.tape),
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

  /// The last element that is no later than its home.
  std::size_t element_of(NodeId node) const {
    const auto behind = std::upper_bound(elements_.begin(), elements_.end(), program_.homes[node]);
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
      while (stage > 0 && program_.stages[stage].first > program_.homes[node]) --stage;
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
  Graph graph_;
  std::vector<NodeId> needed_;
  std::vector<NodeId> elements_;  // of the forward part, that divisions divide
};

}  // namespace

std::unique_ptr<CutProgram> cut_loss(const Var& loss, int stages) {
  auto program = std::make_unique<CutProgram>();
  record_loss(*program, loss);
  Cutter(*program).cut(static_cast<std::size_t>(stages));
  return program;
}

std::unique_ptr<CutProgram> cut_value(const Var& value, int stages) {
  auto program = std::make_unique<CutProgram>();
  record_value(*program, value);
  Cutter(*program).cut(static_cast<std::size_t>(stages));
  return program;
}

std::vector<Piece> pieces_of(const CutProgram& program, const std::vector<bool>& computes_again) {
  const Tape& tape = program.tape;
  const auto stages = static_cast<PieceId>(program.stages.size());
  PieceCut cut;
  cut.piece_of = program.piece_of;
  cut.of_outcome = stages - 1;
  cut.of_gradients = stages;
  cut.nodes.resize(program.pieces());
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (program.piece_of[node] != none) cut.nodes[program.piece_of[node]].push_back(node);
  }
  for (PieceId piece = 0; piece < program.pieces(); ++piece) {
    const bool is_backward = piece >= stages;
    const PieceId stage = is_backward ? program.pieces() - 1 - piece : piece;
    cut.pieces.push_back({static_cast<int>(stage), is_backward});
    if (!is_backward || !computes_again[stage]) continue;
    add_computed_again(tape, cut.nodes[piece],
                       [&](NodeId node) { return program.piece_of[node] == stage; });
  }
  return record_pieces(program, cut);
}

}  // namespace palimpsest
