#pragma once

#include <optional>
#include <span>
#include <string>

#include "autodiff/export.h"
#include "checkpoint/graph.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Reads a graph from a JSON file of format `palimpsest-graph`, version 1, which `docs/planning.md`
/// describes. Throws `FileError` naming the file and the place in it for anything the format does
/// not allow, and the byte where a file ends too early.
Graph read_graph(const std::string& path);

/// Writes a graph such that `read_graph` gives an equal one, one node per line. A graph that was
/// made of a tape keeps its form and its tape nodes. The graph's name in the file is that of the
/// file. Which values are present is the state of a run and is not written. Throws `FileError` when
/// the file cannot be written, `ArgumentError` for a name that is not UTF-8.
void write_graph(const Graph& graph, const std::string& path);

/// Writes the planner's view of `tape` as recorded so far, with these `targets`: `graph_of` on one
/// thread. `write_graph(loss, path)` in strategy/backward.h differentiates first.
void write_graph(const Tape& tape, std::span<const ValueId> targets, const std::string& path,
                 std::optional<NodeId> backward_begins = {});

}  // namespace palimpsest
