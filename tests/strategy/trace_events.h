#pragma once

#include <string>
#include <vector>

namespace palimpsest {

/// An event of a Chrome trace; what it does not have is empty or 0.
struct TraceEvent {
  std::string phase;  ///< "X": it has a duration; "M": it names a row
  std::string category;
  std::string name;
  std::string row_name;  ///< of a row that is named
  int row = 0;
  double begin = 0;  ///< microseconds
  double end = 0;
};

/// The events of a trace that a report wrote, in order. Throws what the JSON library throws where
/// the file is no trace.
std::vector<TraceEvent> read_trace(const std::string& path);

}  // namespace palimpsest
