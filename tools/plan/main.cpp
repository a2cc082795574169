// palimpsest-plan: plans graph files from the command line. See docs/planning.md.
#include <iostream>

#include "checkpoint/planners.h"
#include "tools/plan/commands.h"
#include "tools/plan/outcome.h"

namespace palimpsest::tool {

void list_planners(const Arguments& arguments) {
  Rows rows;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const NamedPlanner& planner : named_planners()) {
    rows.push_back(
        {std::string(planner.name) + std::string(planner.setting), std::string(planner.summary)});
    json.push_back({{"planner", rows.back()[0]}, {"summary", rows.back()[1]}});
  }
  std::cout << (arguments.json ? json.dump(2) + "\n" : in_columns(rows));
}

namespace {

using Names = std::vector<std::string>;

/// The planners that handle any graph and need no settings.
Names complete_names() {
  Names names;
  for (const NamedPlanner& planner : named_planners()) {
    if (!planner.setting.starts_with(':') && planner.any_size) names.emplace_back(planner.name);
  }
  return names;
}

void run(Arguments arguments) {
  if (arguments.list) return list_planners(arguments);
  if (!arguments.check.empty()) return check(arguments);
  const bool sweeps = arguments.sweep > 0;
  if (arguments.planners.empty()) arguments.planners = sweeps ? complete_names() : Names{"auto"};
  sweeps ? sweep(arguments) : plan(arguments);
}

}  // namespace

}  // namespace palimpsest::tool

int main(int argc, char** argv) {
  try {
    std::optional<int> exit_code;
    palimpsest::tool::Arguments arguments = palimpsest::tool::read_arguments(argc, argv, exit_code);
    if (exit_code) return *exit_code;
    palimpsest::tool::run(std::move(arguments));
    std::cout.flush();
    if (!std::cout)
      throw palimpsest::FileError(
          "[output] writing to stdout failed; check where it is redirected to");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "palimpsest-plan: " << error.what() << '\n';
    return 1;
  }
}
