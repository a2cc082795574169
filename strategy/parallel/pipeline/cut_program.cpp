#include "strategy/parallel/pipeline/cut_program.h"

#include <algorithm>

#include "strategy/parallel/partition/elements.h"
#include "strategy/parallel/pipeline/division.h"

namespace palimpsest {
namespace {

/// Finds stages, and assigns nodes to pieces.
void cut(CutProgram& program, int stages) {
  const Tape& tape = program.tape;
  const Elements elements(program);
  const std::vector<Bytes> crossing = elements.crossing();
  // With fewer elements than stages the last stages have nothing to do.
  const std::size_t parts = std::min(static_cast<std::size_t>(stages), elements.size());
  if (parts > 0) {
    for (const std::size_t begin : divide(elements.seconds(), crossing, parts).begins) {
      program.stages.push_back({.first = elements.node(begin), .incoming = crossing[begin]});
    }
  }
  program.stages.resize(static_cast<std::size_t>(stages), {.first = tape.node_count()});
  program.piece_of.assign(tape.node_count(), none);
  for (const NodeId node : elements.needed()) {
    if (is_free(tape, node)) continue;
    const bool is_backward = node >= program.backward_begins;
    std::size_t stage = program.stages.size() - 1;
    while (stage > 0 && program.stages[stage].first > program.owners[node]) --stage;
    CutProgram::Stage& found = program.stages[stage];
    (is_backward ? found.backward : found.forward) += elements.graph().cost(node);
    program.piece_of[node] =
        static_cast<PieceId>(is_backward ? program.pieces() - 1 - stage : stage);
    if (is_backward && reads_states(tape, node)) found.has_loop = true;
  }
}

}  // namespace

std::unique_ptr<CutProgram> cut_loss(const LossAndOutputs& values, int stages) {
  auto program = std::make_unique<CutProgram>();
  record_loss(*program, values);
  cut(*program, stages);
  return program;
}

std::unique_ptr<CutProgram> cut_value(const Var& value, int stages) {
  auto program = std::make_unique<CutProgram>();
  record_value(*program, value);
  cut(*program, stages);
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
