#include <algorithm>
#include <nlohmann/json.hpp>

#include "autodiff/files.h"
#include "strategy/base/report.h"

namespace palimpsest {
namespace {

void require_steps(const Report& report) {
  if (!report.steps.empty() || report.computed == 0) return;
  throw ArgumentError("[report] the run of " + std::to_string(report.computed) +
                      " steps was not profiled; run it with .profile = true");
}

}  // namespace

Chart::Curve Report::live_bytes_curve() const {
  require_steps(*this);
  Chart::Curve curve{.label = "live bytes", .points = {}};
  double last = 0;
  for (const Step& step : steps) {
    const double live = static_cast<double>(step.event.live) / (1 << 20);
    curve.points.emplace_back(static_cast<double>(step.event.start) * 1e-6, live);
    last = std::max(last, static_cast<double>(step.event.end) * 1e-6);
  }
  curve.points.emplace_back(last, curve.points.empty() ? 0 : curve.points.back().second);
  std::stable_sort(curve.points.begin(), curve.points.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return curve;
}

void Report::write_svg(const std::string& path) const {
  Chart chart;
  chart.title = planner + ", budget " + (budget == unlimited ? "none" : format_bytes(budget));
  chart.x_label = "milliseconds";
  chart.y_label = "MiB live";
  chart.curves.push_back(live_bytes_curve());
  if (budget != unlimited) {
    chart.lines.push_back({"budget", static_cast<double>(budget) / (1 << 20)});
  }
  chart.lines.push_back({"predicted peak", static_cast<double>(predicted_peak) / (1 << 20)});
  write_file(path, render(chart), "report");
}

void Report::write_chrome_trace(const std::string& path) const {
  if (timeline.empty() && device_tasks.empty()) require_steps(*this);
  nlohmann::json events = nlohmann::json::array();
  const auto add_rows = [&](const std::string& what, std::size_t count) {
    for (std::size_t row = 0; row < count; ++row) {
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", 0},
                        {"tid", row},
                        {"args", {{"name", what + " " + std::to_string(row)}}}});
    }
  };
  const auto add = [&](const std::string& name, const std::string& kind, int row, const auto& task,
                       nlohmann::json args) {
    events.push_back({{"name", name},
                      {"cat", kind},
                      {"ph", "X"},
                      {"ts", static_cast<double>(task.start) * 1e-3},
                      {"dur", static_cast<double>(task.end - task.start) * 1e-3},
                      {"pid", 0},
                      {"tid", row},
                      {"args", std::move(args)}});
  };
  add_rows("stage", stages.size());
  for (const StageTask& task : timeline) {
    const std::string what = task.backward ? "backward" : "forward";
    add(what + " " + std::to_string(task.micro_batch), what, task.stage, task,
        {{"micro_batch", task.micro_batch}});
  }
  add_rows("device", devices.size());
  for (const DeviceTask& task : device_tasks) {
    if (task.sender < 0) {
      add("piece", "piece", task.device, task, nlohmann::json::object());
    } else {
      add("transfer from " + std::to_string(task.sender), "transfer", task.device, task,
          {{"bytes", task.bytes}});
    }
  }
  for (const Step& step : steps) {
    const double start = static_cast<double>(step.event.start) * 1e-3;
    const double length = static_cast<double>(step.event.end - step.event.start) * 1e-3;
    events.push_back({{"name", step.operation},
                      {"cat", step.recomputed ? "recomputed" : "computed"},
                      {"ph", "X"},
                      {"ts", start},
                      {"dur", length},
                      {"pid", 0},
                      {"tid", step.event.thread},
                      {"args", {{"node", step.event.node}, {"scope", step.name}}}});
    events.push_back({{"name", "live bytes"},
                      {"ph", "C"},
                      {"ts", start},
                      {"pid", 0},
                      {"args", {{"bytes", step.event.live}}}});
  }
  const nlohmann::json trace{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  write_file(path, trace.dump(1, ' ', false, nlohmann::json::error_handler_t::replace), "report");
}

}  // namespace palimpsest
