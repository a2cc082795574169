#include "tools/plan/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

namespace palimpsest::tool {

Bytes Budget::of(Bytes keep_all_peak) const {
  return static_cast<Bytes>(share ? amount * static_cast<double>(keep_all_peak) : amount);
}

std::optional<Budget> parse_budget(std::string text) {
  std::erase(text, ' ');
  Budget budget{0, false};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, budget.amount);
  const std::string unit(rest, end);
  if (unit == "%") {
    budget.amount /= 100;
    budget.share = true;
  } else if (!unit.empty() && unit != "B") {
    static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
    const auto known = std::find(std::begin(units), std::end(units), unit);
    if (known == std::end(units)) return {};
    budget.amount = std::ldexp(budget.amount, 10 * static_cast<int>(known - units + 1));
  }
  if (error != std::errc() || !(budget.amount >= 0 && budget.amount < 0x1p62)) return {};
  return budget;
}

namespace {

void check_together(const Arguments& arguments) {
  if (arguments.list) return;
  if (arguments.graph.empty()) throw CLI::RequiredError("GRAPH.json");
  if (arguments.planners.size() > 1 && arguments.sweep == 0) {
    throw CLI::ValidationError("--planner", "several planners need --sweep");
  }
}

}  // namespace

Arguments read_arguments(int argc, char** argv, std::optional<int>& exit_code) {
  Arguments arguments;
  CLI::App app(
      "Plans which values a program keeps in memory and which it recomputes, to stay within a "
      "memory budget.",
      "palimpsest-plan");
  app.add_option("graph", arguments.graph, "graph file written by write_graph")
      ->type_name("GRAPH.json");
  auto* budget = app.add_option_function<std::string>(
      "--budget",
      [&](const std::string& text) {
        const std::optional<Budget> given = parse_budget(text);
        if (!given) {
          throw CLI::ValidationError(
              "--budget",
              "'" + text + "' is not a budget; give a budget such as 40%, 2GiB or 4096");
        }
        arguments.budget = *given;
        arguments.budget_given = true;
      },
      "bytes, or a share of the keep-all peak [100%]");
  budget->type_name("40%|2GiB|BYTES");
  auto* planner = app.add_option(
      "--planner", arguments.planners,
      "planner; see --list [auto; with --sweep, all planners of any graph without a setting]");
  planner->type_name("NAME")->delimiter(',')->allow_extra_args(false);
  auto* seconds = app.add_option("--seconds", arguments.seconds,
                                 "time limit of the search; 0 takes the first plan found");
  seconds->check([](const std::string& text) {
    double number = 0;
    const bool fine = CLI::detail::lexical_cast(text, number) && number >= 0;
    return fine ? std::string() : "'" + text + "' is not a number of seconds; give 0 or more";
  });
  auto* json = app.add_flag("--json", arguments.json, "print JSON");
  auto* schedule = app.add_option("--schedule", arguments.schedule, "write the schedule to a file");
  schedule->type_name("OUT.json");
  auto* sweep = app.add_option("--sweep", arguments.sweep,
                               "plan for this many budgets, from the smallest possible to 100%");
  sweep->check(CLI::Range(2, 10000))->excludes(budget)->excludes(schedule);
  auto* svg = app.add_option("--svg", arguments.svg, "draw the sweep to a file");
  svg->type_name("FILE")->needs(sweep);
  auto* html =
      app.add_option("--html", arguments.html, "write a page that explains the plan to a file");
  html->type_name("FILE")->excludes(sweep);
  auto* explain = app.add_flag("--explain", arguments.explain,
                               "explain the plan: its peak, recomputation and other budgets");
  explain->excludes(sweep)->excludes(json);
  auto* check = app.add_option("--check", arguments.check, "verify a schedule; plan nothing");
  check->type_name("SCHEDULE.json");
  for (CLI::Option* other : {planner, seconds, schedule, sweep, html, explain})
    check->excludes(other);
  auto* list = app.add_flag("--list", arguments.list, "list the planners");
  for (CLI::Option* other : {budget, planner, seconds, schedule, sweep, check, html, explain}) {
    list->excludes(other);
  }
  try {
    app.parse(argc, argv);
    check_together(arguments);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
  }
  return arguments;
}

}  // namespace palimpsest::tool
