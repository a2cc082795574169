#pragma once

#include <string_view>

#include "strategy/loops/loop_division.h"

namespace palimpsest {

/// Records a loop as one node of `tape`. Returns the last state and the outputs.
std::vector<Var> record_loop(Tape& tape, const std::shared_ptr<const Loop>& loop,
                             std::span<const Var> inputs, const Where& where);

/// The function that recorded a loop or its backward part, such as `while_loop`. Empty for other
/// nodes.
std::string_view loop_function(const NodeView& node);

/// A loop on a tape and its backward parts, one for every recorded gradient.
struct RecordedLoop {
  NodeId forward;
  const Loop* recorded;
  std::vector<NodeId> backward = {};
  std::vector<const LoopGradient*> gradients = {};

  const Loop& loop() const { return *recorded; }
  LoopParts parts() const { return {*recorded, gradients}; }
  bool is_differentiated() const { return !gradients.empty(); }
};
/// True when an operation of the tape, or of a step of its loops at any depth, is a user's.
bool holds_operations_of_users(const Tape& tape);
/// The loops among the `needed` nodes, with the needed backward parts. Loops that have some are the
/// first ones.
std::vector<RecordedLoop> needed_loops(const Tape& tape, const std::vector<bool>& needed);
/// Sets the loop state budget of a loop and how its steps are run. The held states pass from the
/// forward part to the backward parts. Drops states that are held now.
void give_state_budget(Tape& tape, const RecordedLoop& loop, const LoopDivision& division);
/// Resets all loops: no memory for held states, and unlimited step budgets.
void take_state_budgets(Tape& tape);

}  // namespace palimpsest
