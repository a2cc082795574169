#include "strategy/explain/explain_text.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <tuple>

namespace palimpsest {
namespace {

constexpr std::size_t most_rows = 12;

double ratio(Bytes part, Bytes whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string reason_of(const Explanation& explanation, const Explanation::LiveStorage& live) {
  switch (live.reason) {
    case Explanation::Reason::workspace:
      return "scratch memory of this step";
    case Explanation::Reason::made:
      return "made by this step";
    case Explanation::Reason::operand:
      return "read by this step for the last time";
    case Explanation::Reason::read_later:
      return std::string("read later by ") +
             (explanation.is_backward(live.reader) ? "the backward part, " : "") +
             explanation.describe(live.reader);
    case Explanation::Reason::result:
      return "result of the run";
  }
  return {};
}

/// The begin of a row: bytes, their share, and number of values.
std::string head_of(Bytes bytes, Bytes all, std::uint32_t count) {
  char head[64];
  std::snprintf(head, sizeof head, "  %10s %6s %5u× ", format_bytes(bytes).c_str(),
                percent(ratio(bytes, all)).c_str(), count);
  return head;
}

/// Storages that have operation, line and reason in common.
struct Row {
  Bytes bytes = 0;
  std::uint32_t count = 0;
  Explanation::LiveStorage first = {};
  bool has_one_name = true;
};

std::vector<Row> rows_of(const Explanation& explanation,
                         const std::vector<Explanation::LiveStorage>& live) {
  const NodeLabels& labels = explanation.labels();
  const auto line_of = [&](NodeId node) {
    return node == none ? std::string_view() : labels.line(node);
  };
  const auto operation_of = [&](NodeId node) {
    return node == none ? std::string_view() : labels.operation(node);
  };
  std::map<std::tuple<std::string_view, std::string_view, Explanation::Reason, std::string_view,
                      std::string_view>,
           std::size_t>
      known;
  std::vector<Row> rows;
  for (const Explanation::LiveStorage& each : live) {
    const auto [entry, is_new] =
        known.try_emplace({operation_of(each.node), line_of(each.node), each.reason,
                           operation_of(each.reader), line_of(each.reader)},
                          rows.size());
    if (is_new) rows.emplace_back().first = each;
    Row& row = rows[entry->second];
    row.bytes += each.bytes;
    ++row.count;
    row.has_one_name &= labels.name(each.node) == labels.name(row.first.node);
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), &Row::bytes);
  return rows;
}

std::string name_of(const Explanation& explanation, const Row& row) {
  if (row.has_one_name) return explanation.describe(row.first.node);
  const NodeLabels& labels = explanation.labels();
  std::string text(labels.operation(row.first.node));
  text.append(" in ").append(std::to_string(row.count)).append(" places");
  if (const std::string_view line = labels.line(row.first.node); !line.empty()) {
    text.append(" (").append(line).append(")");
  }
  return text;
}

/// The path of one more scope than `outer` has. `outer` is a begin of `path`, in whole scopes.
std::string_view one_deeper(std::string_view path, std::string_view outer) {
  if (path.size() == outer.size()) return path;
  const std::size_t end = path.find('/', outer.empty() ? 0 : outer.size() + 1);
  return path.substr(0, end);
}

/// The live values under one scope.
struct ScopeRow {
  std::string_view path;
  Bytes bytes = 0;
  std::vector<Explanation::LiveStorage> values;
};

/// The values of a row, divided by the next inner scopes. Those in no inner scope stay together.
std::vector<ScopeRow> divided(const Explanation& explanation, const ScopeRow& row) {
  std::map<std::string_view, ScopeRow> parts;
  for (const Explanation::LiveStorage& each : row.values) {
    const std::string_view path = one_deeper(explanation.labels().scope(each.node), row.path);
    ScopeRow& part = parts[path];
    part.path = path;
    part.bytes += each.bytes;
    part.values.push_back(each);
  }
  std::vector<ScopeRow> made;
  for (auto& [path, part] : parts) made.push_back(std::move(part));
  return made;
}

/// The bytes of values by scope, largest first. The largest scopes are divided into inner ones as
/// long as there is room for their rows. Empty without scopes.
std::string by_scope(const Explanation& explanation,
                     const std::vector<Explanation::LiveStorage>& live, Bytes all) {
  std::vector<ScopeRow> rows = divided(explanation, {{}, all, live});
  if (rows.size() == 1 && rows[0].path.empty()) return {};
  const auto sort = [&] {
    std::ranges::stable_sort(rows, std::ranges::greater(), &ScopeRow::bytes);
  };
  sort();
  for (std::size_t i = 0; i < rows.size();) {
    std::vector<ScopeRow> parts = divided(explanation, rows[i]);
    const bool is_same = parts.size() == 1 && parts[0].path == rows[i].path;
    if (is_same || rows.size() - 1 + parts.size() > most_rows || rows[i].path.empty()) {
      ++i;
      continue;
    }
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
    rows.insert(rows.end(), parts.begin(), parts.end());
    sort();
    i = 0;
  }
  std::string text = "by scope:\n";
  Bytes shown = 0;
  for (const ScopeRow& row : std::span(rows).first(std::min(most_rows, rows.size()))) {
    text += head_of(row.bytes, all, static_cast<std::uint32_t>(row.values.size()));
    text.append(row.path.empty() ? std::string_view("no scope") : row.path).append("\n");
    shown += row.bytes;
  }
  if (rows.size() > most_rows) {
    text += "  and " + std::to_string(rows.size() - most_rows) + " other scopes, " +
            format_bytes(all - shown) + "\n";
  }
  return text;
}

std::string at_the_peak(const Explanation& explanation) {
  const Plan& plan = explanation.plan();
  const std::vector<Explanation::LiveStorage> live = explanation.live_at(explanation.peak_step());
  const Bytes bytes = plan.simulation.timeline[explanation.peak_step()];
  const auto before_peak = std::span(plan.schedule.steps).first(explanation.peak_step());
  const auto computes = [](const Step& step) { return step.kind == Step::Kind::compute; };
  std::string text = "peak: " + format_bytes(bytes) + " are live while step " +
                     std::to_string(std::ranges::count_if(before_peak, computes) + 1) + " of " +
                     std::to_string(plan.simulation.computed) + " runs, " +
                     explanation.describe(explanation.peak_node()) + "\n";
  const std::vector<Row> rows = rows_of(explanation, live);
  Bytes shown = 0;
  for (const Row& row : rows) {
    if (&row - rows.data() == most_rows) break;
    text += head_of(row.bytes, bytes, row.count) + name_of(explanation, row) + ", " +
            reason_of(explanation, row.first) + "\n";
    shown += row.bytes;
  }
  if (rows.size() > most_rows) {
    text += "  and " + std::to_string(rows.size() - most_rows) + " kinds of smaller values, " +
            format_bytes(bytes - shown) + "\n";
  }
  return text + by_scope(explanation, live, bytes);
}

/// What loops run again.
std::string of_loops(const Explanation& explanation,
                     const std::vector<Explanation::LoopSteps>& loops) {
  std::uint64_t run = 0;
  std::uint64_t repeated = 0;
  double seconds = 0;
  for (const Explanation::LoopSteps& loop : loops) {
    run += loop.run;
    repeated += loop.repeated;
    seconds += loop.seconds;
  }
  const double all = explanation.plan().simulation.cost;
  const auto share = [&](double part) { return percent(all > 0 ? part / all : 0); };
  std::string text = std::to_string(repeated) + " of " + std::to_string(run) + " steps of loops, " +
                     share(seconds) + " of the predicted time\n";
  for (const Explanation::LoopSteps& loop :
       std::span(loops).first(std::min(most_rows, loops.size()))) {
    text += "  " + share(loop.seconds) + " of the time: " + loop.loop + ", " +
            std::to_string(loop.repeated) + " of " + std::to_string(loop.run) + " steps\n";
  }
  if (loops.size() > most_rows) {
    text += "  and " + std::to_string(loops.size() - most_rows) + " others\n";
  }
  return text;
}

std::string recomputation(const Explanation& explanation) {
  const std::vector<Explanation::Repeated> repeated = explanation.recomputed();
  const std::vector<Explanation::LoopSteps> loops = explanation.repeated_steps();
  const std::string again = of_loops(explanation, loops);
  if (repeated.empty()) return "recomputed: " + (loops.empty() ? "nothing\n" : again);
  double seconds = 0;
  std::uint32_t runs = 0;
  for (const Explanation::Repeated& each : repeated) {
    seconds += each.seconds;
    runs += each.runs - 1;
  }
  const double all = explanation.plan().simulation.cost;
  std::string text = "recomputed: " + std::to_string(repeated.size()) + " nodes, " +
                     std::to_string(runs) + " runs, " + percent(all > 0 ? seconds / all : 0) +
                     " of the predicted time\n";
  for (std::size_t i = 0; i < std::min(most_rows, repeated.size()); ++i) {
    const Explanation::Repeated& each = repeated[i];
    text += "  " + percent(all > 0 ? each.seconds / all : 0) +
            " of the time: " + explanation.describe(each.node) + ", run " +
            std::to_string(each.runs) + " times\n";
  }
  if (repeated.size() > most_rows) {
    text += "  and " + std::to_string(repeated.size() - most_rows) + " others\n";
  }
  return text + (loops.empty() ? "" : "run again in loops: " + again);
}

}  // namespace

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * fraction);
  return text;
}

std::vector<std::string> sentences_of(const Explanation& explanation,
                                      const Explanation::Budgets& budgets) {
  const double here = explanation.plan().compute_overhead();
  const auto compared = [&](const char* what, const Explanation::Alternative& other) {
    const double change = other.overhead - here;
    const std::string cost = std::abs(change) < 5e-4
                                 ? " would cost the same."
                                 : " would cost " + percent(std::abs(change)) + " of a pass " +
                                       (change > 0 ? "more." : "less.");
    return std::string(what) + " (" + format_bytes(other.budget) + ")" + cost;
  };
  std::vector<std::string> sentences;
  sentences.push_back(budgets.less ? compared("10 % less memory", *budgets.less)
                                   : "10 % less memory is not feasible.");
  if (budgets.more) {
    const bool is_mebibyte =
        budgets.more->budget - explanation.plan().predicted_peak() == Bytes{1} << 20;
    sentences.push_back(compared(is_mebibyte ? "1 MiB more" : "10 % more memory", *budgets.more));
  }
  sentences.push_back("The smallest feasible budget is " + format_bytes(budgets.smallest.budget) +
                      ", with " + percent(budgets.smallest.overhead) +
                      " extra work. Within it most bytes are live during " + budgets.smallest_node +
                      ".");
  sentences.push_back("No schedule takes less than " + format_bytes(budgets.bound) + ".");
  if (budgets.holds_states) {
    sentences.back() += " All this is for loops that hold the same states as now.";
  }
  return sentences;
}

std::string explain(const Explanation& explanation) {
  const Plan& plan = explanation.plan();
  const auto computes = [](const Step& step) { return step.kind == Step::Kind::compute; };
  if (std::ranges::none_of(plan.schedule.steps, computes)) return "plan: nothing is computed\n";
  std::string text = "plan: " + plan.summary() + "\n" + at_the_peak(explanation) +
                     recomputation(explanation) + "other budgets:\n";
  for (const std::string& sentence : sentences_of(explanation, explanation.other_budgets(2))) {
    text += "  " + sentence + "\n";
  }
  return text;
}

}  // namespace palimpsest
