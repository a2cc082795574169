#pragma once

#include <span>
#include <vector>

#include "autodiff/tape.h"
#include "checkpoint/meter.h"

namespace palimpsest {

/// Appends the values that are present and no leaves.
void append_present(const Tape& tape, std::vector<ValueId>& values);

/// The nodes all of whose values are present and held outside of the tape as well, in order. They
/// are the user's as leaves are: dropping them would free nothing.
std::vector<NodeId> nodes_held_elsewhere(const Tape& tape);

/// Drops what is present, but for leaves; what the user holds stays his. False when there is
/// nothing to drop.
bool let_go_of_present(Tape& tape);

/// Makes sure that dropping a present value of a node that is not among `held` frees its bytes at
/// `meter`: what somebody else holds too, lies in an arena, or was computed without the meter, is
/// copied into storage of its own, all views of one value into one. Of values that were merged all
/// but one are dropped where a run is `budgeted`, which copies of them might not fit.
void settle_present(Tape& tape, std::span<const NodeId> held, const Meter& meter, bool budgeted);

}  // namespace palimpsest
