#include "checkpoint/planning_files.h"

#include <charconv>
#include <cstdio>

#include "autodiff/files.h"
#include "checkpoint/json_file.h"

namespace palimpsest {
namespace {

constexpr const char* schedule_format = "palimpsest-schedule";

Step read_step(const JsonValue& step) {
  if (step.size() != 2) step.fail("a step is a word and a number, such as [\"compute\", 12]");
  const JsonValue number = step[1];
  const std::int64_t id = number.natural();
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;  // limit of `Step::id`
  if (id > most)
    number.fail(std::to_string(id) + " is too large for the id of a node or value; give at most " +
                std::to_string(most));
  const JsonValue word = step[0];
  if (word.text() == "compute") return Step::compute(static_cast<NodeId>(id));
  if (word.text() == "drop") return Step::drop(static_cast<ValueId>(id));
  word.fail("\"" + word.text() + "\" is not a step; use \"compute\" or \"drop\"");
}

std::uint32_t read_count(const JsonValue& value) {
  const std::int64_t count = value.natural();
  if (count > none)
    value.fail(std::to_string(count) + " is too large; give at most " + std::to_string(none));
  return static_cast<std::uint32_t>(count);
}

/// Sixteen hexadecimal digits, because some JSON readers lose digits of 64-bit integers.
std::string hexadecimal(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

std::uint64_t read_hexadecimal(const JsonValue& value) {
  const std::string& text = value.text();
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, 16);
  if (error != std::errc() || rest != end || text.size() != 16) {
    value.fail("\"" + text + "\" is not 16 hexadecimal digits");
  }
  return number;
}

ScheduledGraph read_scheduled_graph(const JsonValue& value) {
  static constexpr const char* keys[] = {"fused", "simplified", "nodes", "values", "wiring"};
  value.require_members(keys);
  ScheduledGraph graph;
  if (value.has("fused") || value.has("simplified")) {
    graph.form = GraphForm{value.at("fused").boolean(), value.at("simplified").boolean()};
  }
  graph.nodes = read_count(value.at("nodes"));
  graph.values = read_count(value.at("values"));
  graph.wiring = read_hexadecimal(value.at("wiring"));
  return graph;
}

std::string graph_member(const Schedule& schedule) {
  if (!schedule.graph) return "";
  Json graph = Json::object();
  if (schedule.graph->form) {
    graph["fused"] = schedule.graph->form->fuse;
    graph["simplified"] = schedule.graph->form->simplify;
  }
  graph["nodes"] = schedule.graph->nodes;
  graph["values"] = schedule.graph->values;
  graph["wiring"] = hexadecimal(schedule.graph->wiring);
  return ",\"graph\":" + graph.dump();
}

}  // namespace

Schedule read_schedule(const std::string& path) {
  const JsonFile file(path, "read_schedule", schedule_format, {"graph", "steps"});
  const JsonValue root = file.root();
  const JsonValue steps = root.at("steps");
  Schedule schedule;
  if (root.has("graph")) schedule.graph = read_scheduled_graph(root.at("graph"));
  schedule.steps.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) schedule.steps.push_back(read_step(steps[i]));
  return schedule;
}

void write_schedule(const Schedule& schedule, const std::string& path) {
  std::string text = "{\"format\":\"" + std::string(schedule_format) + "\",\"version\":1" +
                     graph_member(schedule) + ",\"steps\":[";
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    text += i > 0 ? ",\n[\"" : "\n[\"";
    text += step.kind == Step::Kind::compute ? "compute" : "drop";
    text += "\"," + std::to_string(step.id) + "]";
  }
  write_file(path, text + "\n]}\n", "write_schedule");
}

}  // namespace palimpsest
