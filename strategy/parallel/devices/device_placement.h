#pragma once

#include <span>
#include <vector>

#include "strategy/base/execution_strategy.h"
#include "strategy/parallel/partition/elements.h"

namespace palimpsest {

/// By element of a program: the device on which it is placed, with its adjoints.
using DevicePlacement = std::vector<int>;

/// Seconds to copy `bytes` bytes from one device to another, by the planners' machine: one task
/// waiting for another, and reading and writing the bytes.
double seconds_of_transfer(Bytes bytes);

/// Placements that are worth planning, without duplicates. Elements of a scope are on the device of
/// the scope. If several scopes match an element, the innermost wins, and of those the longest.
/// Other elements are placed in three ways:
///
/// - Each finishes earliest, in the order of the most work that depends on them (HEFT: Topcuoglu
/// et
///   al., 2002). So independent branches go to different devices.
/// - In ranges of similar duration that few bytes cross. Where there are scopes, each is instead
///   placed with the element before it.
/// - Where there are budgets, in ranges whose bytes are proportional to them. If some devices have
///   no budget, all elements go to those.
///
/// A program without elements may be on any device: its placement has one number.
///
/// Throws `ArgumentError` for an element that belongs to two devices and, where there are
/// gradients, for a scope in which no element is recorded.
std::vector<DevicePlacement> possible_placements(const RecordedProgram& program,
                                                 const Elements& elements,
                                                 std::span<const Device> devices, bool has_budget);

}  // namespace palimpsest
