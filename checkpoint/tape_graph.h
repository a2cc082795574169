#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/machine.h"
#include "checkpoint/planners.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Appends a node of `tape` that reads `inputs` of the graph (see `graph_of`). It becomes a source
/// when it is `supplied` by the user.
void append_node(Graph& graph, const Tape& tape, NodeId node, std::span<const ValueId> inputs,
                 int threads, const Machine& machine = {}, bool supplied = false);
/// Appends the next node of `tape` to a graph that holds those before it.
void append_node(Graph& graph, const Tape& tape, int threads, const Machine& machine = {},
                 bool supplied = false);

/// The planner's view of `tape`, with the same numbers for nodes and values. Leaves are sources. A
/// node's cost is the predicted seconds on `machine`, and its workspace is what it needs for
/// `threads`. Other values that the tape holds are present, unless `afresh` is set.
/// `backward_begins` is the first adjoint node. The nodes `supplied`, in ascending order, are
/// sources like leaves: all their values are present, and the run must not drop them. A user's
/// operation that no target needs is not asked for cost and workspace, which are 0. Throws
/// `ArgumentError` for a target that is not a value.
Graph graph_of(const Tape& tape, std::span<const ValueId> targets, int threads = 1,
               std::optional<NodeId> backward_begins = {}, const Machine& machine = {},
               std::span<const NodeId> supplied = {}, bool afresh = false);

/// The ranges of nodes recorded under `scope`. `scope` is one or several whole components of a path
/// and matches anywhere in it: "attention" matches "layer3/attention" and everything nested in it.
/// Each matching scope gets segments of its own. To exclude adjoint nodes, differentiate outside
/// the scope or after this call. Throws `ArgumentError` listing the scopes when none matches.
std::vector<Segment> segments_in_scope(const Tape& tape, std::string_view scope);

}  // namespace palimpsest
