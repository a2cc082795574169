#pragma once

#include <string>

#include "checkpoint/schedule.h"

namespace palimpsest {

/// Reads a schedule from a JSON file of format `palimpsest-schedule`, version 1:
///
///     {"format": "palimpsest-schedule", "version": 1, "steps": [["compute", 12], ["drop", 7]]}
///
/// The optional member `graph` says which graph it is of, as `ScheduledGraph` does. Whether a graph
/// can be run by it is for `simulate` and `require_graph` to say. Throws `FileError` naming the
/// file and the place in it for whatever the format does not allow.
Schedule read_schedule(const std::string& path);

/// Writes a schedule such that `read_schedule` gives an equal one, of the same graph. Throws
/// `FileError`.
void write_schedule(const Schedule& schedule, const std::string& path);

}  // namespace palimpsest
