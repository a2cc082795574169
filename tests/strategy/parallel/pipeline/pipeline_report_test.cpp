#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "tests/strategy/execution/runs.h"
#include "tests/strategy/trace_events.h"
#include "tests/temporary_file.h"

namespace palimpsest::pipeline_report_test {
namespace {

using Catch::Matchers::Contains;

struct SomeThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

TEST_CASE_METHOD(SomeThreads, "pipelines: the timeline is the schedule") {
  constexpr int stages = 3;
  constexpr int parts = 6;
  const Report report = run(small_transformer(), pipeline_of(stages, parts)).report;
  REQUIRE(report.timeline.size() == 2 * stages * parts);
  std::map<std::tuple<int, bool, int>, Report::StageTask> done;
  for (std::size_t i = 0; i < report.timeline.size(); ++i) {
    const Report::StageTask& task = report.timeline[i];
    CHECK(task.start <= task.end);
    done[{task.stage, task.backward, task.micro_batch}] = task;
    if (i == 0 || report.timeline[i - 1].stage != task.stage) continue;
    CHECK(report.timeline[i - 1].end <= task.start);  // never two at once
  }
  REQUIRE(done.size() == report.timeline.size());
  for (const auto& [which, task] : done) {
    const auto& [stage, backward, m] = which;
    if (!backward && stage > 0) CHECK(done[{stage - 1, false, m}].end <= task.start);
    if (backward && stage + 1 < stages) CHECK(done[{stage + 1, true, m}].end <= task.start);
    if (backward) CHECK(done[{stage, false, m}].end <= task.start);
    if (!backward && m >= stages - stage) {
      CHECK(done[{stage, true, m - (stages - stage)}].end <= task.start);
    }
  }
  CHECK(report.idle() >= 0);
  CHECK(report.idle() < 1);
  for (const Report::Stage& stage : report.stages) {
    CHECK(stage.forward_seconds > 0);
    CHECK(stage.backward_seconds > 0);
    CHECK((stage.incoming > 0) == (&stage != &report.stages[0]));
  }
  std::ostringstream stream;
  stream << report;
  CHECK_THAT(stream.str(), Contains("pipeline") && Contains("stages idle") && Contains("2, ") &&
                               Contains("in flight"));
}

TEST_CASE_METHOD(SomeThreads, "pipelines: traces have a row for each stage, and steps in it") {
  const TemporaryFile file;
  for (const bool profiling : {false, true}) {
    ExecutionStrategy strategy = pipeline_of(2, 3);
    strategy.run.profile = profiling;
    const Report report = run(small_transformer(), strategy).report;
    CHECK(report.steps.empty() != profiling);
    report.write_chrome_trace(file.path());
    int rows = 0;
    std::map<std::string, int> tasks;
    std::size_t steps = 0;
    std::vector<std::pair<double, double>> spans[2];
    for (const TraceEvent& event : read_trace(file.path())) {
      if (event.phase == "M") {
        ++rows;
        CHECK(event.row_name == "stage " + std::to_string(event.row));
      }
      if (event.phase != "X") continue;
      auto& in_row = spans[event.row];
      if (event.category == "forward" || event.category == "backward") {
        ++tasks[event.name];
        in_row.emplace_back(event.begin, event.end);
      } else {
        ++steps;
        CHECK(std::ranges::any_of(in_row, [&](const auto& task) {
          return task.first <= event.begin && event.end <= task.second;
        }));
      }
    }
    CHECK(rows == 2);
    CHECK(tasks.size() == 6);
    for (const auto& [name, count] : tasks) CHECK(count == 2);
    CHECK(tasks.contains("forward 0"));
    CHECK(tasks.contains("backward 2"));
    CHECK(steps == report.steps.size());
    if (profiling) {
      CHECK(report.kernel_seconds > 0);
      CHECK(report.resident > 0);
      CHECK_NOTHROW(report.write_svg(file.path()));
    }
  }
}

TEST_CASE("pipelines: training goes on as without") {
  SmallModel piped = perceptron();
  SmallModel plain = perceptron();
  for (Tensor& parameter : plain.parameters) parameter = parameter.clone();
  for (Tensor& parameter : piped.parameters) parameter = parameter.clone();
  const auto train = [](SmallModel& model, const ExecutionStrategy& strategy) {
    Execution execution(strategy);
    const auto optimizer = adam({.learning_rate = 0.02});
    std::vector<double> losses;
    for (int step = 0; step < 40; ++step) {
      const Gradients g = execution.gradients(model.loss, model.parameters, model.batch);
      losses.push_back(g.loss().item());
      optimizer->step(g);
    }
    return losses;
  };
  const std::vector<double> losses = train(piped, pipeline_of(2, 3));
  CHECK(losses == train(plain, {.accumulation = 3}));
  CHECK(losses.back() < losses.front() / 2);
}

}  // namespace
}  // namespace palimpsest::pipeline_report_test
