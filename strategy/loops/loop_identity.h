#pragma once

#include <string>
#include <vector>

#include "strategy/loops/held_states.h"
#include "strategy/loops/loop_steps.h"

namespace palimpsest {

/// Lines that a journal of a loop and the run that continues it must have in common. Each is a name
/// and a value: tag, options, operations with their attributes, random streams, and hashes of all
/// that the loop reads. `held` is null for a part that holds no states. `first_step` is the hash of
/// the first step's results, which depend on user functions too.
std::vector<std::string> identity_of(const Loop& loop, const KernelCall& call,
                                     const HeldStates* held, std::uint64_t first_step);

/// The hash of the operations of a step, with their attributes and constants.
std::uint64_t hash_of_step(const RecordedStep& step);

/// The hash of consecutive pieces.
std::uint64_t hash_of(const std::vector<std::span<std::byte>>& pieces, std::uint64_t seed = 0);

/// The hash of what is given to a backward part, and of what is requested.
std::uint64_t hash_of_requested(const LoopGradient::Requested& requested);

/// As it is written in lines.
std::string hash_text(std::uint64_t hash);

}  // namespace palimpsest
