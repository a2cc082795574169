#pragma once

#include "strategy/loops/loop_division.h"

namespace palimpsest {

/// Records a loop as one node of `tape`. Returns the last state and the outputs.
std::vector<Var> record_loop(Tape& tape, const std::shared_ptr<const Loop>& loop,
                             std::span<const Var> inputs, const Where& where);

/// A loop on a tape, and its backward parts: one for every gradient that was recorded.
struct RecordedLoop {
  NodeId forward;
  std::vector<NodeId> backward = {};
  std::vector<const LoopGradient*> gradients = {};

  const Loop& loop() const { return gradients[0]->loop(); }
};
/// True when there is the backward part of some loop.
bool has_loop_gradients(const Tape& tape);
/// The loops with the backward parts that are among the nodes that are `needed`.
std::vector<RecordedLoop> differentiated_loops(const Tape& tape, const std::vector<bool>& needed);
/// How a loop is run: what it holds states in, from its forward part to its backward parts, and its
/// steps. Drops these states.
void give_room(Tape& tape, const RecordedLoop& loop, const LoopDivision& division);
/// Gives every loop no room, and its steps what they take.
void take_room_from_loops(Tape& tape);

}  // namespace palimpsest
