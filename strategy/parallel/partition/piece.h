#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "strategy/compile/program_spec.h"
#include "strategy/parallel/partition/recorded_program.h"

namespace palimpsest {

/// One of the pieces that a program is cut into, in an order in which each reads what those before
/// it make.
using PieceId = std::uint32_t;

/// A piece of a program, recorded on a tape of its own where what comes from other pieces are
/// leaves without values.
struct Piece {
  int stage = 0;  ///< of a pipeline, or a device
  bool is_backward = false;
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  BufferInterface wanted;  ///< on that tape

  std::vector<ValueId> arguments;  ///< of the program; as those wanted
  struct Result {
    enum class Use : std::uint8_t { other_pieces, outcome, gradient } use;
    ValueId value;              ///< of the program
    std::size_t parameter = 0;  ///< of a gradient
  };
  std::vector<Result> results;  ///< as those wanted

  struct Leaf {
    ValueId own;
    ValueId recorded;  ///< of the program's forward part
  };
  std::vector<Leaf> leaves;
};

/// How a program is cut.
struct PieceCut {
  struct Kind {
    int stage = 0;
    bool is_backward = false;
  };
  std::vector<Kind> pieces;
  std::vector<PieceId> piece_of;           ///< by node; `none` where it is free or not needed
  std::vector<std::vector<NodeId>> nodes;  ///< by piece: what it computes, in order
  PieceId of_outcome = 0;    ///< that has the outcome for a result where no piece makes it
  PieceId of_gradients = 0;  ///< the first that has gradients for results, made there or not
};

/// Adds to the nodes of a piece those that it computes again: of the nodes that its own read, and
/// that these read in turn, those for which `again` holds.
template <class Again>
void add_computed_again(const Tape& tape, std::vector<NodeId>& nodes, Again again) {
  std::vector<bool> read(tape.node_count());
  const auto read_inputs = [&](NodeId node) {
    for (const ValueId input : tape.inputs(node)) read[tape.producer(input)] = true;
  };
  for (const NodeId node : nodes) read_inputs(node);
  std::vector<NodeId> added;
  for (NodeId node = tape.node_count(); node-- > 0;) {
    if (!read[node]) continue;
    // Nodes that are free, and belong to no piece, hand on who reads them.
    if (is_free(tape, node)) read_inputs(node);
    if (!again(node)) continue;
    added.push_back(node);
    read_inputs(node);
  }
  nodes.insert(nodes.begin(), added.rbegin(), added.rend());
}

/// Records the pieces of a program. Those of which nothing is wanted are empty.
std::vector<Piece> record_pieces(const RecordedProgram& program, const PieceCut& cut);

/// While it lives, a piece has the leaves of a tape that its program was recorded on, or one that
/// is recorded again.
class LentLeaves {
 public:
  LentLeaves(const Piece& piece, const Tape& tape);
  ~LentLeaves();
  LentLeaves(const LentLeaves&) = delete;
  LentLeaves& operator=(const LentLeaves&) = delete;

 private:
  const Piece& piece_;
};

}  // namespace palimpsest
