#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/machine.h"
#include "checkpoint/planners.h"

namespace palimpsest {

/// Appends a node of `tape` that reads `inputs` of the graph (see `graph_of`), as a source when it
/// is `supplied` by the user.
void append_node(Graph& graph, const Tape& tape, NodeId node, std::span<const ValueId> inputs,
                 int threads, const Machine& machine = {}, bool supplied = false);
/// Appends the next node of `tape` to a graph that holds those before it.
void append_node(Graph& graph, const Tape& tape, int threads, const Machine& machine = {},
                 bool supplied = false);

/// What a planner sees of `tape`, with the same numbers for nodes and values. Leaves are sources; a
/// node takes the seconds that the machine takes for it; its workspace is
/// what it needs for `threads`; values of other nodes that the tape holds are present.
/// `backward_begins` is the node the adjoints start at. The nodes `supplied`, in order, are sources
/// as leaves are: all their values are present and not the run's to drop. With `afresh` no other
/// value is taken for present. Throws `ArgumentError` for a target that is no value.
Graph graph_of(const Tape& tape, std::span<const ValueId> targets, int threads = 1,
               std::optional<NodeId> backward_begins = {}, const Machine& machine = {},
               std::span<const NodeId> supplied = {}, bool afresh = false);

/// The runs of nodes recorded under `scope`: whole components of the path, one or several, found
/// anywhere in it, so that "attention" means "layer3/attention" and what is nested in it. Every
/// scope it is found in makes segments of its own. Differentiate outside of the scope, or before
/// asking, and adjoint nodes are not among them. Throws `ArgumentError` naming the scopes there are
/// when none matches.
std::vector<Segment> segments_in_scope(const Tape& tape, std::string_view scope);

}  // namespace palimpsest
