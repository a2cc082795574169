#pragma once

#include <span>
#include <vector>

#include "checkpoint/schedule.h"

namespace palimpsest {

/// The schedule that computes `nodes` in this order and holds each value no longer than it must: a
/// value is dropped after the last step that reads it before it is made again, at once when there
/// is none, and never when it is a target made for the last time. No other choice of drops has a
/// lower peak for this order. Throws `InternalError` when a value is read that was not made before.
Schedule drop_after_last_use(const Graph& graph, std::span<const NodeId> nodes);

/// The nodes that a schedule computes, in order.
std::vector<NodeId> order_of(const Schedule& schedule);

/// `nodes` without those that make nothing that is read, or asked for, before it is made again.
std::vector<NodeId> without_useless(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace palimpsest
