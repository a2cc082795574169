#pragma once

#include <span>
#include <vector>

#include "strategy/execution/execution_strategy.h"
#include "strategy/pieces/elements.h"

namespace palimpsest {

/// By element of a program, the device that it is placed on, with its adjoints.
using DevicePlacement = std::vector<int>;

/// What bringing so many bytes from one device to another takes, by the machine that planners go
/// by: they are read and written, after a task has waited for another.
double seconds_of_transfer(Bytes bytes);

/// Placements that are worth planning, none twice. Elements of a scope are where it is; of scopes
/// that hold an element the longest says. The others are placed
/// - such that each ends earliest, those first that most work hangs on (HEFT: Topcuoglu et al.,
///   2002): branches that do not wait for each other on different devices;
/// - in ranges that take about as long as each other, across whose ends few bytes pass or, where
///   there are scopes, each with the element before it;
/// - where devices have budgets that differ, in ranges that make as many bytes as these are to each
///   other, none of them on a device with a budget where others have none.
///
/// Throws `ArgumentError` for a scope that no node is recorded in, naming those that there are, and
/// for an element that belongs to two devices.
std::vector<DevicePlacement> possible_placements(const RecordedProgram& program,
                                                 const Elements& elements,
                                                 std::span<const Device> devices);

}  // namespace palimpsest
