#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "strategy/compile/program_spec.h"
#include "strategy/parallel/partition/recorded_program.h"

namespace palimpsest {

/// The number of a piece of a program. A piece reads only values of pieces with smaller numbers.
using PieceId = std::uint32_t;

/// A piece of a program, recorded on its own tape. Values from other pieces are leaves without
/// values there.
struct Piece {
  int stage = 0;  ///< a pipeline stage or a device
  bool is_backward = false;
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  BufferInterface wanted;  ///< on that tape

  std::vector<ValueId> arguments;  ///< values of the program, in the order of `wanted.arguments`
  struct Result {
    enum class Use : std::uint8_t { other_pieces, outcome, gradient, output } use;
    ValueId value;          ///< of the program
    std::size_t index = 0;  ///< of the parameter or the output, if it is a gradient or an output
  };
  std::vector<Result> results;  ///< in the order of `wanted.results`

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
  std::vector<PieceId> piece_of;           ///< by node; `none` if it is free or not needed
  std::vector<std::vector<NodeId>> nodes;  ///< by piece: what it computes, in order
  PieceId of_outcome = 0;                  ///< has the outcome as a result if no piece computes it
  PieceId of_gradients = 0;  ///< the first with gradients as results, even if computed earlier
};

/// Adds to the nodes of a piece those that it recomputes: nodes for which `again` holds and that
/// its nodes read, directly or through other recomputed nodes.
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
    // Free nodes belong to no piece, so look through them.
    if (is_free(tape, node)) read_inputs(node);
    if (!again(node)) continue;
    added.push_back(node);
    read_inputs(node);
  }
  nodes.insert(nodes.begin(), added.rbegin(), added.rend());
}

/// Records the pieces of a program. A piece without wanted results is empty.
std::vector<Piece> record_pieces(const RecordedProgram& program, const PieceCut& cut);

/// Lends a piece the leaf values of a tape during the lifetime of this object. The tape is the one
/// that the program was recorded on, or one that records the same again.
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
