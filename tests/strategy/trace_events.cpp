#include "tests/strategy/trace_events.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace palimpsest {

std::vector<TraceEvent> read_trace(const std::string& path) {
  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file);
  std::vector<TraceEvent> events;
  for (const auto& json : trace.at("traceEvents")) {
    TraceEvent& event = events.emplace_back();
    event.phase = json.at("ph");
    event.category = json.value("cat", "");
    event.name = json.value("name", "");
    if (json.contains("args")) event.row_name = json["args"].value("name", "");
    event.row = json.value("tid", 0);
    event.begin = json.value("ts", 0.0);
    event.end = event.begin + json.value("dur", 0.0);
  }
  return events;
}

}  // namespace palimpsest
