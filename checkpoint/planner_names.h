#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/planner.h"

namespace palimpsest {

/// What a planner asked for by name is made from.
struct PlannerSettings {
  std::string text;               ///< as it was asked for: `uniform:8`
  std::optional<double> number;   ///< after the colon
  std::optional<double> seconds;  ///< most time that looking for a plan may take

  /// The number as a count, `otherwise` when there is none. Throws `ArgumentError` unless it is
  /// one.
  std::uint32_t count(std::uint32_t otherwise = 0) const;
};

/// A planner that can be asked for by name.
struct NamedPlanner {
  std::string_view name;
  /// What stands behind the name: nothing, `:WORD` for a number that must, `[:WORD]` for one that
  /// may.
  std::string_view setting;
  std::string_view summary;  ///< one line
  PlannerPtr (*make)(const PlannerSettings& settings);
  bool timed;            ///< heeds `PlannerSettings::seconds`
  bool any_size = true;  ///< serves graphs of any size
};

/// All of them. A planner is added by a line in planner_names.cpp.
std::span<const NamedPlanner> named_planners();

/// The one that `text` asks for, as `auto` or `uniform:8`. Throws `ArgumentError` listing the names
/// there are.
const NamedPlanner& named_planner(std::string_view text);

/// Makes the planner that `text` asks for. Throws `ArgumentError` for a name or a setting that is
/// not there, and for a time limit when the planner heeds none.
PlannerPtr planner_named(std::string_view text, std::optional<double> seconds = {});

}  // namespace palimpsest
