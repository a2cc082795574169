#pragma once

#include <optional>
#include <span>
#include <string>

#include "autodiff/export.h"
#include "checkpoint/graph.h"
#include "checkpoint/machine.h"
#include "checkpoint/schedule.h"

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

/// Reads a schedule from a JSON file of format `palimpsest-schedule`, version 1:
///
///     {"format": "palimpsest-schedule", "version": 1, "steps": [["compute", 12], ["drop", 7]]}
///
/// The optional member `graph` identifies the graph, as `ScheduledGraph` does. `simulate` and
/// `given` check whether the schedule is valid for a graph. Throws `FileError` naming the
/// file and the place in it for anything the format does not allow.
Schedule read_schedule(const std::string& path);

/// Writes a schedule such that `read_schedule` gives an equal one, for the same graph. Throws
/// `FileError`.
void write_schedule(const Schedule& schedule, const std::string& path);

/// Reads a machine from a JSON file of format `palimpsest-machine`, version 1, whose members are
/// those of the struct. The list of caches may be shorter, the smallest first. Rates of one kind of
/// work may be left out, and are then unknown. Throws `FileError` naming the file and the place in
/// it for anything the format does not allow. Throws it, naming the file, for numbers that are not
/// finite, for negative rates, seconds and bytes, for general rates of 0, for caches without a
/// rate, and for caches that are not in order of size.
Machine read_machine(const std::string& path);

/// Writes a machine such that `read_machine` gives an equal one. Throws `ArgumentError` for
/// such numbers, and `FileError` when the file cannot be written.
void write_machine(const Machine& machine, const std::string& path);

}  // namespace palimpsest
