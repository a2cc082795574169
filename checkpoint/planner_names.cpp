#include "checkpoint/planners.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace palimpsest {
namespace {

using Settings = PlannerSettings;

constexpr NamedPlanner planners[] = {
    {"auto", "", "the cheapest plan of the other planners within the budget, improved",
     [](const Settings& settings) { return automatic({.seconds = settings.seconds}); }, true},
    {"keep_all", "", "computes each node once and drops values after their last use",
     [](const Settings&) { return keep_all(); }, false},
    {"reordered", "", "computes each node once, in an order with fewer live bytes",
     [](const Settings&) { return reordered(); }, false},
    {"greedy", "", "offline eviction at many memory limits (after Kirisame et al., 2021)",
     [](const Settings&) { return greedy(); }, false},
    {"quick", "", "greedy at one memory limit, or a few", [](const Settings&) { return quick(); },
     false},
    {"search", "", "greedy, improved by large neighbourhood search (Shaw, 1998)",
     [](const Settings& settings) { return search({.seconds = settings.seconds}); }, true},
    {"square_root", "", "√n equal segments, all but the last recomputed (Chen et al., 2016)",
     [](const Settings&) { return square_root(); }, false},
    {"uniform", ":SEGMENTS", "SEGMENTS equal segments, all but the last recomputed",
     [](const Settings& settings) { return uniform({.segments = settings.count()}); }, false},
    {"every", ":NODES", "segments of NODES nodes each, all but the last recomputed",
     [](const Settings& settings) { return uniform({.every = settings.count()}); }, false},
    {"binomial", ":SNAPSHOTS",
     "stages reversed with SNAPSHOTS snapshots (Griewank and Walther, 2000)",
     [](const Settings& settings) { return binomial({.snapshots = settings.count()}); }, false},
    {"chain", "[:STAGES]", "the optimal chain of STAGES stages (after Beaumont et al., 2019)",
     [](const Settings& settings) {
       return chain({.stages = settings.count(ChainSettings().stages)});
     },
     false},
    {"min_cut", "", "keeps the values that minimum cuts choose at the end of the forward part",
     [](const Settings&) { return min_cut(); }, false},
    {"exact", "[:SETS]", "the optimum of small graphs, by A* over at most SETS sets of live values",
     [](const Settings& settings) {
       return exact({.most_sets = settings.count(ExactSettings().most_sets)});
     },
     false, false},
    {"online", "", "drops and recomputes on the way, without looking ahead (Kirisame et al., 2021)",
     [](const Settings&) { return online(); }, false},
    {"fraction", ":SHARE", "auto, also within SHARE of keep-all's peak",
     [](const Settings& settings) { return fraction(*settings.number); }, false},
};

[[noreturn]] void refuse(std::string_view text, const std::string& problem) {
  throw ArgumentError("[planner] '" + std::string(text) + "' " + problem);
}

std::string_view name_in(std::string_view text) { return text.substr(0, text.find(':')); }

std::optional<double> number_in(std::string_view text, const std::string& form) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return {};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number)) {
    refuse(text, "has no number after its colon; use " + form);
  }
  return number;
}

}  // namespace

std::uint32_t PlannerSettings::count(std::uint32_t otherwise) const {
  if (!number) return otherwise;
  if (!(*number >= 0 && *number < none && *number == std::floor(*number))) {
    refuse(text, "needs an integer; give 1 to " + std::to_string(none - 1));
  }
  return static_cast<std::uint32_t>(*number);
}

std::span<const NamedPlanner> named_planners() { return planners; }

const NamedPlanner& named_planner(std::string_view text) {
  const std::string_view name = name_in(text) == "automatic" ? "auto" : name_in(text);
  const auto found =
      std::find_if(std::begin(planners), std::end(planners),
                   [&](const NamedPlanner& planner) { return planner.name == name; });
  if (found != std::end(planners)) return *found;
  std::string names;
  for (const NamedPlanner& planner : planners) {
    names += (names.empty() ? "" : ", ") + std::string(planner.name);
    names += planner.setting;
  }
  refuse(text, "is not a planner; use one of " + names);
}

PlannerPtr planner_named(std::string_view text, std::optional<double> seconds) {
  const NamedPlanner& planner = named_planner(text);
  const std::string form = std::string(planner.name) + std::string(planner.setting);
  const Settings settings{std::string(text), number_in(text, form), seconds};
  if (planner.setting.empty() && settings.number) refuse(text, "takes no number; use " + form);
  if (planner.setting.starts_with(':') && !settings.number)
    refuse(text, "needs a number; use " + form);
  if (seconds && !planner.timed)
    refuse(text, "takes no time limit, because it does not search; leave it out");
  return planner.make(settings);
}

}  // namespace palimpsest
