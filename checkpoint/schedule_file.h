#pragma once

#include <string>

#include "autodiff/export.h"
#include "checkpoint/schedule.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Reads a schedule from a JSON file of format `palimpsest-schedule`, version 1:
///
///     {"format": "palimpsest-schedule", "version": 1, "steps": [["compute", 12], ["drop", 7]]}
///
/// The optional member `graph` identifies the graph, as `ScheduledGraph` does. `simulate` and
/// `require_graph` check whether the schedule is valid for a graph. Throws `FileError` naming the
/// file and the place in it for anything the format does not allow.
Schedule read_schedule(const std::string& path);

/// Writes a schedule such that `read_schedule` gives an equal one, for the same graph. Throws
/// `FileError`.
void write_schedule(const Schedule& schedule, const std::string& path);

}  // namespace palimpsest
