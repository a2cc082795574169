#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "autodiff/export.h"
#include "checkpoint/planner.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Settings of a planner that was requested by name.
struct PlannerSettings {
  std::string text;               ///< as requested: `uniform:8`
  std::optional<double> number;   ///< after the colon
  std::optional<double> seconds;  ///< time limit of the search for a plan

  /// The number as a count, `otherwise` when there is none. Throws `ArgumentError` unless it is a
  /// whole number that is not negative.
  std::uint32_t count(std::uint32_t otherwise = 0) const;
};

/// A planner that can be requested by name.
struct NamedPlanner {
  std::string_view name;
  /// The setting after the name: nothing, `:WORD` for a required number, `[:WORD]` for an optional
  /// one.
  std::string_view setting;
  std::string_view summary;  ///< one line
  PlannerPtr (*make)(const PlannerSettings& settings);
  bool timed;            ///< respects `PlannerSettings::seconds`
  bool any_size = true;  ///< accepts graphs of any size
};

/// All named planners. To add one, add a line to planner_names.cpp.
std::span<const NamedPlanner> named_planners();

/// The planner that `text` names, such as `auto` or `uniform:8`. Throws `ArgumentError` listing all
/// names.
const NamedPlanner& named_planner(std::string_view text);

/// Makes the planner that `text` names. Throws `ArgumentError` for an unknown name or setting, and
/// for a time limit when the planner has no use for one.
PlannerPtr planner_named(std::string_view text, std::optional<double> seconds = {});

}  // namespace palimpsest
