#pragma once

#include <span>
#include <vector>

#include "strategy/base/execution_strategy.h"
#include "strategy/parallel/partition/elements.h"

namespace palimpsest {

/// By element of a program, the device that it is placed on, with its adjoints.
using DevicePlacement = std::vector<int>;

/// What bringing so many bytes from one device to another takes, by the machine that planners go
/// by: they are read and written, after a task has waited for another.
double seconds_of_transfer(Bytes bytes);

/// Placements that are worth planning, none twice. Elements of a scope are where it is; of scopes
/// that an element is recorded in the innermost says, of these the longest. The others are placed
/// - such that each ends earliest, those first that most work hangs on (HEFT: Topcuoglu et al.,
///   2002): branches that do not wait for each other on different devices;
/// - in ranges that take about as long as each other, across whose ends few bytes pass or, where
///   there are scopes, each with the element before it;
/// - where they have a budget, in ranges that make as many bytes as these are to each other, none
/// of
///   them on a device with a budget where others have none.
/// A program without elements is on any of the devices: its placement has one number.
///
/// Throws `ArgumentError` for an element that belongs to two devices and, where there are
/// gradients, for a scope that no element is recorded in.
std::vector<DevicePlacement> possible_placements(const RecordedProgram& program,
                                                 const Elements& elements,
                                                 std::span<const Device> devices, bool has_budget);

}  // namespace palimpsest
