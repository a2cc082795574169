#include "checkpoint/planning_files.h"

#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace schedule_file_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

TEST_CASE("schedule files: a schedule survives being written and read") {
  const TemporaryFile file;
  const Schedule schedule{{Step::compute(12), Step::drop(7), Step::compute(0)}};
  write_schedule(schedule, file.path());
  CHECK(read_schedule(file.path()) == schedule);
  write_schedule({}, file.path());
  CHECK(read_schedule(file.path()).steps.empty());
}

TEST_CASE("schedule files: a schedule says which graph it is of") {
  const TemporaryFile file;
  Schedule schedule{{Step::compute(1)}};
  for (const auto& form : {std::optional<GraphForm>(), std::optional(GraphForm{true, false}),
                           std::optional(GraphForm{false, true})}) {
    schedule.graph = ScheduledGraph{form, 3, 4, 0xfedcba9876543210};
    write_schedule(schedule, file.path());
    CHECK(read_schedule(file.path()).graph == schedule.graph);
    CHECK(file.read().find("\"wiring\":\"fedcba9876543210\"") != std::string::npos);
  }
  schedule.graph.reset();
  write_schedule(schedule, file.path());
  CHECK_FALSE(read_schedule(file.path()).graph.has_value());
}

TEST_CASE("schedule files: whatever is wrong is an error that names the place") {
  const auto steps = [](const std::string& list) {
    return R"({"format":"palimpsest-schedule","version":1,"steps":[)" + list + "]}";
  };
  const auto of_graph = [](const std::string& members) {
    return R"({"format":"palimpsest-schedule","version":1,"steps":[],"graph":{)" + members + "}}";
  };
  const struct {
    std::string content;
    std::string words;
  } rows[] = {
      {R"({"format":"palimpsest-schedule","version":1,"steps":[["compute",1],)", "byte 68"},
      {R"({"format":"palimpsest-graph","version":1,"steps":[]})", "\"palimpsest-graph\" is not"},
      {R"({"format":"palimpsest-schedule","version":0,"steps":[]})", "version: 0 is unknown"},
      {R"({"format":"palimpsest-schedule","version":1})", "\"steps\" is missing"},
      {R"({"format":"palimpsest-schedule","version":1,"steps":{}})", "this object is not a list"},
      {R"({"format":"palimpsest-schedule","version":1,"steps":[],"x":1})", "\"x\" is unknown"},
      {R"({"format":"palimpsest-schedule","version":1,"steps":[],"steps":[]})",
       "\"steps\" occurs twice"},
      {steps("3"), "steps[0]: 3 is not a list"},
      {steps(R"(["compute",1],["drop"])"), "steps[1]: a step is a word and a number"},
      {steps(R"(["compute",1,2])"), "steps[0]: a step is a word and a number"},
      {steps(R"([1,"compute"])"), "steps[0][1]: this string is not a whole number"},
      {steps(R"([1,1])"), "steps[0][0]: 1 is not a string"},
      {steps(R"(["compute",-1])"), "steps[0][1]: -1 is negative"},
      {steps(R"(["compute",4294967295])"),
       "steps[0][1]: 4294967295 is too large for the id of a node"},
      {steps(R"(["compute",2147483648])"),
       "steps[0][1]: 2147483648 is too large for the id of a node"},
      {steps(R"(["keep",1])"), "steps[0][0]: \"keep\" is not a step; use"},
      {of_graph(R"("nodes":1,"values":2)"), "graph: \"wiring\" is missing"},
      {of_graph(R"("nodes":1,"values":4294967296,"wiring":"0000000000000000")"),
       "graph.values: 4294967296 is too large; give at most 4294967295"},
      {of_graph(R"("nodes":1,"values":2,"wiring":"12")"), "\"12\" is not 16 hexadecimal digits"},
      {of_graph(R"("nodes":1,"values":2,"wiring":"000000000000000x")"), "is not 16 hexadecimal"},
      {of_graph(R"("fused":true,"nodes":1,"values":2,"wiring":"0000000000000000")"),
       "graph: \"simplified\" is missing"},
      {of_graph(R"("x":1)"), "graph: \"x\" is unknown"},
  };
  const TemporaryFile file;
  for (const auto& row : rows) {
    file.write(row.content);
    CHECK_THROWS_WITH(read_schedule(file.path()),
                      Contains("[read_schedule] " + file.path()) && Contains(row.words));
  }
  CHECK_THROWS_AS(read_schedule("/nowhere/schedule.json"), FileError);
  CHECK_THROWS_AS(write_schedule({}, "/nowhere/schedule.json"), FileError);
}

}  // namespace schedule_file_test
