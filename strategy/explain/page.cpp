#include "strategy/explain/page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "strategy/explain/explain_text.h"
#include "strategy/explain/page_template.h"

namespace palimpsest {
namespace {

using nlohmann::json;

std::string bytes_text(Bytes bytes) { return bytes == unlimited ? "none" : format_bytes(bytes); }

/// A page without anything below its tiles.
json empty_page(const std::string& title, const std::string& summary) {
  return {{"title", title},           {"summary", summary},     {"tiles", json::array()},
          {"tables", json::array()},  {"lanes", json::array()}, {"limits", json::array()},
          {"live", nullptr},          {"steps", nullptr},       {"budgets", nullptr},
          {"backward_step", nullptr}, {"peak_step", 0}};
}

void add_tile(json& page, const char* label, const std::string& value) {
  page["tiles"].push_back({label, value});
}

/// The nodes, and the texts that label them.
void add_nodes(json& page, const Explanation& explanation) {
  const Graph& graph = explanation.graph();
  const NodeLabels& labels = explanation.labels();
  page["texts"] = labels.texts();
  json nodes = json::array();
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    const auto& [operation, name, line, scope] = labels.indices(node);
    nodes.push_back(
        {operation, name, line, explanation.is_backward(node), graph.cost(node), scope});
  }
  page["nodes"] = std::move(nodes);
}

/// The compute steps, live bytes during each, and the storages with the compute steps during which
/// they are live.
void add_steps(json& page, const Explanation& explanation) {
  const Graph& graph = explanation.graph();
  const Plan& plan = explanation.plan();
  const std::vector<Step>& steps = plan.schedule.steps;
  std::vector<std::uint32_t> computed_before(steps.size() + 1);
  json nodes = json::array();
  json live = json::array();
  json again = json::array();
  std::vector<bool> seen(graph.node_count());
  Bytes most = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    computed_before[k + 1] = computed_before[k];
    if (steps[k].kind != Step::Kind::compute) continue;
    const NodeId node = steps[k].id;
    if (page["backward_step"].is_null() && explanation.is_backward(node)) {
      page["backward_step"] = computed_before[k];
    }
    ++computed_before[k + 1];
    nodes.push_back(node);
    live.push_back(plan.simulation.timeline[k]);
    most = std::max(most, plan.simulation.timeline[k]);
    again.push_back(seen[node] ? 1 : 0);
    seen[node] = true;
  }
  page["steps"] = std::move(nodes);
  page["live"] = std::move(live);
  page["again"] = std::move(again);
  page["most"] = most;
  page["peak_step"] = computed_before[explanation.peak_step()];

  const std::vector<Interval>& intervals = plan.layout.intervals;
  std::vector<std::uint32_t> ends;  // the first compute step after each interval
  for (const Interval& interval : intervals) ends.push_back(computed_before[interval.last + 1]);
  for (const Interval& interval : intervals) {
    if (interval.takes_over == none) continue;
    ends[interval.takes_over] =
        std::min(ends[interval.takes_over], computed_before[interval.first]);
  }
  std::vector<std::uint32_t> current(graph.value_count(), none);  // interval, by storage
  json storages = json::array();
  std::vector<json> reads(computed_before.back(), json::array());
  std::size_t next = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    for (; next < intervals.size() && intervals[next].first == k; ++next) {
      const Interval& interval = intervals[next];
      const bool is_scratch = interval.storage == Interval::workspace;
      if (!is_scratch) current[interval.storage] = static_cast<std::uint32_t>(next);
      const NodeId node = is_scratch ? steps[k].id : graph.producer(interval.storage);
      const bool was_present = !is_scratch && k == 0 && graph.is_present(interval.storage);
      const auto first = was_present ? std::int64_t{-1} : std::int64_t{computed_before[k]};
      storages.push_back({node, first, static_cast<std::int64_t>(ends[next]) - 1, interval.bytes,
                          is_scratch ? 1 : 0});
    }
    if (steps[k].kind != Step::Kind::compute) continue;
    for (const ValueId input : graph.inputs(steps[k].id)) {
      const std::uint32_t storage = current[graph.storage(input)];
      if (storage != none) reads[computed_before[k]].push_back(storage);
    }
  }
  page["storages"] = std::move(storages);
  page["reads"] = std::move(reads);
}

void add_recomputed(json& page, const Explanation& explanation) {
  constexpr std::size_t most_shown = 40;
  const double all = explanation.plan().simulation.cost;
  json rows = json::array();
  for (const Explanation::Repeated& each : explanation.recomputed()) {
    if (rows.size() == most_shown) break;
    rows.push_back({each.node, each.runs, all > 0 ? each.seconds / all : 0});
  }
  page["recomputed"] = std::move(rows);
  json loops = json::array();
  for (const Explanation::LoopSteps& loop : explanation.repeated_steps()) {
    if (loops.size() == most_shown) break;
    loops.push_back({loop.loop, loop.repeated, loop.run, all > 0 ? loop.seconds / all : 0});
  }
  page["repeated_steps"] = std::move(loops);
}

void add_budgets(json& page, const Explanation& explanation) {
  // Each budget is planned for. Large graphs take long, and their curves are smooth.
  constexpr std::uint32_t nodes_planned = 20'000;
  const std::uint32_t points =
      std::clamp(nodes_planned / std::max(1u, explanation.graph().node_count()), 2u, 12u);
  const Explanation::Budgets found = explanation.other_budgets(static_cast<int>(points));
  json curve = json::array();
  for (const auto& [budget, peak, overhead] : found.curve) {
    curve.push_back({budget, peak, overhead});
  }
  page["budgets"] = {{"curve", std::move(curve)}, {"lines", sentences_of(explanation, found)}};
  page["here"] = {explanation.plan().predicted_peak(), explanation.plan().compute_overhead()};
}

void add_plan(json& page, const Explanation& explanation) {
  const Plan& plan = explanation.plan();
  if (plan.schedule.steps.empty()) return;
  add_nodes(page, explanation);
  add_steps(page, explanation);
  add_recomputed(page, explanation);
  add_budgets(page, explanation);
  if (plan.budget != unlimited) page["limits"].push_back({"budget", plan.budget});
}

void add_loops(json& page, const Report& report) {
  if (report.loops.empty()) return;
  json rows = {{"loop", "steps", "states held", "components held", "steps that keep values",
                "forward steps run", "of these again", "written to disk", "read from disk",
                "budget of a step"}};
  for (const Report::Loop& loop : report.loops) {
    rows.push_back(
        {loop.name, std::to_string(loop.steps), std::to_string(loop.states),
         std::to_string(loop.held_components.size()) + " of " + std::to_string(loop.components),
         std::to_string(loop.kept_steps), std::to_string(loop.forward_steps),
         std::to_string(loop.recomputed_steps), std::to_string(loop.disk_writes),
         std::to_string(loop.disk_reads),
         loop.step_budget > 0 ? format_bytes(loop.step_budget) : "keeps all"});
  }
  page["tables"].push_back({{"title", "Loops"}, {"rows", std::move(rows)}});
}

void add_lanes(json& page, const Report& report) {
  if (!report.stages.empty()) {
    json rows = {{"stage", "budget", "predicted peak", "measured peak", "received", "in flight"}};
    for (std::size_t s = 0; s < report.stages.size(); ++s) {
      const Report::Stage& stage = report.stages[s];
      rows.push_back({std::to_string(s), bytes_text(stage.budget),
                      format_bytes(stage.predicted_peak), format_bytes(stage.measured_peak),
                      format_bytes(stage.incoming), std::to_string(stage.in_flight)});
    }
    page["tables"].push_back({{"title", "Stages"}, {"rows", std::move(rows)}});
    json tasks = json::array();
    for (const Report::StageTask& task : report.timeline) {
      tasks.push_back({{"lane", task.stage},
                       {"start", task.start},
                       {"end", task.end},
                       {"backward", task.backward},
                       {"label", (task.backward ? "backward of micro-batch " : "micro-batch ") +
                                     std::to_string(task.micro_batch)}});
    }
    page["lanes"].push_back({{"title", "Stages over time"},
                             {"count", report.stages.size()},
                             {"name", "stage"},
                             {"tasks", std::move(tasks)}});
  }
  if (!report.devices.empty()) {
    json rows = {{"device", "budget", "predicted peak", "measured peak", "received"}};
    for (std::size_t d = 0; d < report.devices.size(); ++d) {
      const Report::Device& device = report.devices[d];
      rows.push_back({std::to_string(d), bytes_text(device.budget),
                      format_bytes(device.predicted_peak), format_bytes(device.measured_peak),
                      format_bytes(device.incoming)});
    }
    page["tables"].push_back({{"title", "Devices"}, {"rows", std::move(rows)}});
    json tasks = json::array();
    for (const Report::DeviceTask& task : report.device_tasks) {
      const bool is_transfer = task.sender >= 0;
      tasks.push_back({{"lane", task.device},
                       {"start", task.start},
                       {"end", task.end},
                       {"backward", is_transfer},
                       {"label", is_transfer ? format_bytes(task.bytes) + " from device " +
                                                   std::to_string(task.sender)
                                             : std::string("piece")}});
    }
    page["lanes"].push_back({{"title", "Devices over time (transfers in orange)"},
                             {"count", report.devices.size()},
                             {"name", "device"},
                             {"tasks", std::move(tasks)}});
  }
}

/// The measured steps of a profiled run that has no plan as a whole.
void add_measured_steps(json& page, const Report& report) {
  json live = json::array();
  json again = json::array();
  json names = json::array();
  Bytes most = 0;
  for (const Report::Step& step : report.steps) {
    live.push_back(step.event.live);
    most = std::max(most, step.event.live);
    again.push_back(step.recomputed ? 1 : 0);
    names.push_back(step.name.empty() ? step.operation : step.operation + ' ' + step.name);
  }
  page["live"] = std::move(live);
  page["again"] = std::move(again);
  page["names"] = std::move(names);
  page["most"] = most;
  if (report.budget != unlimited) page["limits"].push_back({"budget", report.budget});
}

void replace(std::string& text, std::string_view mark, const std::string& by) {
  text.replace(text.find(mark), mark.size(), by);
}

std::string in_template(const json& page) {
  std::string data = page.dump(-1, ' ', false, json::error_handler_t::replace);
  // `</script>` in a name would end the data, and `<!--` would change how it is read.
  for (std::size_t at = 0; (at = data.find('<', at)) != std::string::npos;) {
    data.replace(at, 1, "\\u003c");
  }
  std::string title;
  for (const char c : page["title"].get<std::string>()) {
    title += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  std::string html = page_template;
  replace(html, "@TITLE@", title);
  replace(html, "@DATA@", data);
  return html;
}

}  // namespace

std::string page_of(const Explanation& explanation, const std::string& title) {
  const Plan& plan = explanation.plan();
  json page = empty_page(title, plan.summary());
  add_tile(page, "budget", bytes_text(plan.budget));
  add_tile(page, "predicted peak", format_bytes(plan.predicted_peak()));
  add_tile(page, "without recomputation", format_bytes(plan.keep_all_peak));
  add_tile(page, "extra work", percent(plan.compute_overhead()));
  add_plan(page, explanation);
  return in_template(page);
}

std::string page_of(const Report& report) {
  json page = empty_page("Memory of a run", report.summary());
  add_tile(page, "budget", bytes_text(report.budget));
  add_tile(page, "predicted peak", format_bytes(report.predicted_peak));
  add_tile(page, "measured peak", format_bytes(report.measured_peak));
  add_tile(page, "without recomputation", format_bytes(report.keep_all_peak));
  add_tile(page, "extra work", percent(report.compute_overhead));
  add_tile(page, "nodes run, recomputed",
           std::to_string(report.computed) + ", " + std::to_string(report.recomputed));
  if (report.explanation != nullptr) {
    add_plan(page, *report.explanation);
  } else if (!report.steps.empty()) {
    add_measured_steps(page, report);
  }
  add_loops(page, report);
  add_lanes(page, report);
  return in_template(page);
}

}  // namespace palimpsest
