#include "checkpoint/schedule_file.h"

#include "autodiff/files.h"
#include "checkpoint/json_file.h"

namespace palimpsest {
namespace {

constexpr const char* schedule_format = "palimpsest-schedule";

Step read_step(const JsonValue& step) {
  if (step.size() != 2) step.fail("a step is a word and a number, as [\"compute\", 12]");
  const JsonValue number = step[1];
  const std::int64_t id = number.natural();
  if (id >= none) number.fail(std::to_string(id) + " is more than any node or value has");
  const JsonValue word = step[0];
  if (word.text() == "compute") return Step::compute(static_cast<NodeId>(id));
  if (word.text() == "drop") return Step::drop(static_cast<ValueId>(id));
  word.fail("\"" + word.text() + "\" is no step; steps are \"compute\" and \"drop\"");
}

}  // namespace

Schedule read_schedule(const std::string& path) {
  const JsonFile file(path, "read_schedule", schedule_format, {"steps"});
  const JsonValue root = file.root();
  const JsonValue steps = root.at("steps");
  Schedule schedule;
  schedule.steps.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) schedule.steps.push_back(read_step(steps[i]));
  return schedule;
}

void write_schedule(const Schedule& schedule, const std::string& path) {
  std::string text =
      "{\"format\":\"" + std::string(schedule_format) + "\",\"version\":1,\"steps\":[";
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    text += i > 0 ? ",\n[\"" : "\n[\"";
    text += step.kind == Step::Kind::compute ? "compute" : "drop";
    text += "\"," + std::to_string(step.id) + "]";
  }
  write_file(path, text + "\n]}\n", "write_schedule");
}

}  // namespace palimpsest
