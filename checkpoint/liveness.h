#pragma once

#include <span>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/schedule.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The schedule that computes `nodes` in this order and holds each value no longer than necessary.
/// A value is dropped after the last step that reads it before it is made again, or at once when no
/// step does. A target made for the last time is never dropped. No other choice of drops has a
/// lower peak for this order. Throws `InternalError` when a value is read before it is made.
Schedule drop_after_last_use(const Graph& graph, std::span<const NodeId> nodes);

/// The nodes that a schedule computes, in order.
std::vector<NodeId> order_of(const Schedule& schedule);

/// `nodes` without those whose outputs are neither read nor targets before they are made again.
std::vector<NodeId> without_useless(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace palimpsest
