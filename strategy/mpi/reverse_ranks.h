#pragma once

#include <chrono>
#include <memory>

#include "autodiff/error.h"
#include "autodiff/export.h"
#include "checkpoint/reverse/reverse_group.h"
#include "strategy/mpi/rank_world.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The ranks of a world, as the group of a `ReverseDriver`: each has its part of the state, and
/// calls `run` and `forecast` together with the others. `world` must outlive the result.
///
///     ReverseDriver driver(functions, {.steps = n, .resume = folder, .tag = "heat 1",
///                                      .group = reverse_ranks(world)});
///
/// All ranks keep and restore the same steps: within the least budget, for the largest sizes and
/// costs that any rank has. Functions may send messages to other ranks, such as the cells at the
/// edge of a part. They are called for the same steps in the same order everywhere. Ranks have a
/// journal each, in a folder `rank-<number>` below `ReverseOptions::resume`, and continue from the
/// latest record that all of them have. So it does not matter whether one rank was killed or all.
///
/// A call either succeeds on all ranks or throws on all ranks, as `RankWorld` says. A rank that
/// waits for a message of a failed one cannot learn of it. So the failed rank waits for the others
/// for a time of `patience`. Then it prints its error and ends the process, and `mpirun` ends the
/// others. Choose a time in which the slowest rank makes several steps.
///
/// The driver throws `RankError` where ranks have different options. Throws `ArgumentError` if
/// `patience` is not positive.
std::shared_ptr<ReverseGroup> reverse_ranks(
    RankWorld& world, std::chrono::duration<double> patience = std::chrono::seconds(30),
    Where where = Where::current());

}  // namespace palimpsest
