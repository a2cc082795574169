#pragma once

#include <string>
#include <vector>

namespace palimpsest {

/// An event of a Chrome trace. Missing members are empty or 0.
struct TraceEvent {
  std::string phase;  ///< "X": has a duration; "M": names a row
  std::string category;
  std::string name;
  std::string row_name;  ///< of a named row
  int row = 0;
  double begin = 0;  ///< microseconds
  double end = 0;
};

/// The events of a trace written by a report, in order. If the file is not a trace, throws the
/// errors of the JSON library.
std::vector<TraceEvent> read_trace(const std::string& path);

}  // namespace palimpsest
